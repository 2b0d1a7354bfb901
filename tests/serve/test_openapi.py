"""What the description of the interface says of answers to feedback."""

from services import in_folder


def test_feedback_that_is_refused_is_answered_by_a_result_or_a_problem(tmp_path):
    with in_folder(tmp_path) as service:
        found = service.ask("GET", "/openapi.json")
    operation = found["paths"]["/v1/models/{model}/feedback"]["post"]

    def schema(status):
        return operation["responses"][str(status)]["content"]["application/json"]["schema"]

    either = {status for status in operation["responses"] if "anyOf" in schema(status)}
    assert {"404", "409", "410", "422"} <= either
    for status in ("404", "409", "410", "422"):
        assert schema(status) == {"anyOf": [schema(401), schema(200)]}
    assert schema(401) != schema(200)
