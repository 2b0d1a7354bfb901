"""Speed over time."""

import speed


def row(figure, ratio, version="1"):
    return dict.fromkeys(speed.COLUMNS, "") | {
        "figure": figure, "ratio": str(ratio), "version": version,
    }  # fmt: skip


def test_a_slow_down_beside_the_last_version_is_seen():
    before = [row("a", 5.0), row("b", 1.0), row("a", 1.0, "2")]
    found = [row("a", 1.0 + speed.SLOWER), row("b", speed.SLOWER - 0.01), row("new", 9.0)]
    assert speed.slower(found, before) == ["a"]
    assert speed.slower(found, []) == []


def test_rows_are_added_to_the_file(tmp_path):
    path = tmp_path / "speed.csv"
    assert speed.kept(path) == []
    speed.append([row("a, b", 1.0)], path)
    speed.append([row("a, b", 2.0)], path)
    assert [float(one["ratio"]) for one in speed.kept(path)] == [1.0, 2.0]


def test_the_command_fails_when_it_became_slower(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(speed, "PATH", tmp_path / "speed.csv")
    monkeypatch.setattr(speed, "measured", lambda turns: [row("a", 1.0)])
    assert speed.main(["--check", "--append"]) == 0
    monkeypatch.setattr(speed, "measured", lambda turns: [row("a", 1.01 * speed.SLOWER)])
    assert speed.main([]) == 0
    assert speed.main(["--check"]) == 1
    assert "slower than the last version" in capsys.readouterr().out


def test_the_file_has_the_figures_of_today():
    assert {one["figure"] for one in speed.kept(speed.PATH)} == set(speed.figures())
