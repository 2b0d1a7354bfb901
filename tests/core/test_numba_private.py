"""What is private to Numba does what it is used for; each test says what is lost if not."""

import math
import os
import subprocess
import sys
from functools import partial
from types import FunctionType

import numba
import numpy as np
import pytest
from numba.core.bytecode import FunctionIdentity
from numba.core.compiler import Compiler, CompilerBase
from numba.core.types.functions import BaseFunction

from copies import copy_package
from onebit.core.compiling import (
    HOOKS,
    compiled,
    compiled_separately,
    entry_point,
    kernel,
    lean_kernel,
    link,
    link_nothing,
    no_alias,
    rarely_called,
    received,
)
from onebit.core.example import Example
from onebit.core.hooks import Hook
from onebit.core.numba_private import Part, WholeCompiler, new_whole
from processes import run_python

pytestmark = pytest.mark.skipif(len(HOOKS) < len(Hook), reason="some hooks are off")


@pytest.fixture
def package(tmp_path):
    """A copy of onebit of its own, without compiled code."""
    copy_package(tmp_path)
    return tmp_path


def record(names, finalize):
    """Return `finalize` of a library, which notes the library's name."""

    def recording(library):
        names.append(library.name)
        return finalize(library)

    return recording


called = None


def calls(x):
    return called(x)


@kernel
def first_product(row, x):
    return row[0] * x.values[0]


inner = None


def call_inner(x, out):
    return inner(x, out)


def call_received(x, out):
    return inner(received(x), received(out))


def call_again(x, out):
    inner(x, out)
    return inner(x, out)


def makes_array(x, out):
    made = np.empty(out.size)
    for i in range(out.size):
        made[i] = first_product(out[i:], x)
    return made.sum()


class TestNumbasPrivateParts:
    """What `onebit.core.numba_private` takes from Numba beyond its documented interface."""

    state = Example(np.arange(2, dtype=np.uint32), np.ones(2), 2)
    signature = (numba.typeof(state), numba.float64[::1])

    def llvm(self, decorator, function):
        kernel = decorator(function)
        kernel.compile(self.signature)
        return kernel.inspect_llvm(self.signature)

    def test_nrt_switches_the_counting_of_references_off(self):
        """If not: single rounds of a learner with many arrays take several times as long."""

        def view(x, out):
            return x.values[:1][0] + out[:][0]

        for counts in (True, False):
            llvm = self.llvm(numba.njit(_nrt=counts), view)
            assert ("NRT_incref" in llvm or "NRT_decref" in llvm) == counts

    def test_counts_of_references_that_cancel_are_taken_out(self):
        """If not: Folklore, whose kernels make arrays, takes half as long again to decide."""
        ours, numbas = (
            self.llvm(decorator, makes_array).count("@NRT_incref")
            for decorator in (numba.njit(pipeline_class=WholeCompiler), numba.njit)
        )
        assert 0 < ours <= 2 * numbas

    def test_no_alias_marks_the_pointers_of_arguments(self):
        """If not: Banditron takes a fifth longer; nothing else breaks."""

        def plain(x, out):
            out[0] = x.values[0]

        def marked(x, out):
            no_alias()
            out[0] = x.values[0]

        count = [self.llvm(lean_kernel, f).count("noalias") for f in (plain, marked)]
        assert count[1] > count[0]

    def test_kernels_that_are_rarely_called_are_kept_short(self, tmp_path, monkeypatch):
        """If not: OneBitClassifier takes a tenth longer to compile; nothing else breaks."""
        monkeypatch.setattr("onebit.core.code_cache.roots", lambda: [tmp_path])

        @lean_kernel
        def rare(x):
            rarely_called()
            return x.values[0] + 1.0

        whole = compiled("calls", calls, nogil=False, called=rare)
        assert whole(self.state) == 2.0
        (result,) = whole.overloads.values()
        text = result.library.get_llvm_str()
        defined = [one for one in text.splitlines() if one.startswith("define") and "rare" in one]
        assert len(defined) == 1
        assert "optsize" in text

    def test_arguments_of_lean_kernels_are_values(self, tmp_path, monkeypatch):
        """If not: LLVM takes a quarter longer, as each kernel copies the whole state to memory."""
        monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
        found = []
        add = Part.add_llvm_module
        monkeypatch.setattr(
            Part,
            "add_llvm_module",
            lambda part, module: found.append(str(module)) or add(part, module),
        )

        def total(x, out):
            sum_ = 0.0
            for i in range(out.size):
                sum_ += x.values[i]
            return sum_

        whole = partial(new_whole, error_model="numpy", _nrt=False)
        for hooks in (frozenset([Hook.VALUES]), frozenset()):
            part = lean_kernel(FunctionType(total.__code__, globals()))
            bound = FunctionType(call_inner.__code__, {"inner": part})
            dispatcher = whole(bound, hooks)
            dispatcher.compile(self.signature)
            assert entry_point(dispatcher, self.signature)(self.state, np.ones(2)) == 2.0
        copies = [text.count("alloca {") for text in found]  # of structures
        assert copies[0] < copies[1]

    def test_operators_are_looked_up_once(self, monkeypatch):
        """If not: all takes a tenth longer to compile; nothing else breaks."""
        looked_up = []
        usual = BaseFunction.get_call_type

        def look_up(function, context, arguments, keywords):
            looked_up.append((function, arguments))
            return usual(function, context, arguments, keywords)

        monkeypatch.setattr(BaseFunction, "get_call_type", look_up)

        def polynomial(x, out):
            total = 0.0
            for i in range(out.size):
                total = total * 0.5 + out[i] * out[i] * out[i] + x.values[i] * 2.0
                out[i] = -1.0 if total > 9.0 and out[i] > 1.0 else total
            return total

        results, n_looked_up = [], []
        for hooks in (frozenset([Hook.QUICK]), frozenset()):
            dispatcher = new_whole(polynomial, hooks, error_model="numpy", _nrt=False)
            dispatcher.compile(self.signature)
            out = np.array([1.5, 2.5])
            results.append((dispatcher(self.state, out), *out))
            n_looked_up.append(len(looked_up))
            looked_up.clear()
        assert results[0] == results[1] == (20.3125, 5.375, -1.0)
        assert n_looked_up[0] < n_looked_up[1]
        assert BaseFunction.get_call_type is look_up

    def test_entry_point_takes_arguments_without_looking_at_their_types(self):
        """If not: `decide` and `learn` raise, or take several times as long."""

        def second(x, out):
            out[0] = x.values[1]
            return x.n_features

        function = compiled("second", second, nogil=False)
        out = np.zeros(1)
        assert entry_point(function, self.signature)(self.state, out) == 2
        assert out[0] == 1.0

    @pytest.mark.parametrize("first", ["compiled code", "Python"])
    def test_python_can_call_what_was_compiled_for_compiled_code(self, first):
        """If not: tests and debuggers crash where they call a kernel."""

        @kernel
        def total(x):
            return x.values.sum()

        calls = {"compiled code": numba.njit(lambda x: total(x)), "Python": total}
        for call in (calls.pop(first), *calls.values()):
            assert call(self.state) == call(self.state) == 2.0

    def test_kernels_are_optimised_in_what_calls_them_only(self, tmp_path, monkeypatch):
        """If not: the first use of a learner takes half as long again."""
        monkeypatch.setattr("onebit.core.code_cache.roots", lambda: [tmp_path])

        @lean_kernel
        def inner(x):
            return x.values[0]

        @lean_kernel
        def outer(x):
            return inner(x) + 1.0

        assert compiled("calls", calls, nogil=False, called=outer)(self.state) == 2.0
        for part in (inner, outer):
            (result,) = part.overloads.values()
            assert isinstance(result.library, Part)
            assert "alloca" in result.library.get_llvm_str()
        # A library of Numba's own finds all parts, too.
        assert numba.njit(lambda x: outer(x))(self.state) == 2.0

    def test_long_kernels_are_parts_of_their_only_caller(self, tmp_path, monkeypatch):
        """If not: all arrays of a state are copied in each round, which takes half of its time."""
        monkeypatch.setattr("onebit.core.code_cache.roots", lambda: [tmp_path])
        names = {"sin": math.sin}
        exec(f"def long(x):\n v = x.values[0]\n {100 * 'v = sin(v);'}\n return v", names)
        whole = compiled("calls", calls, nogil=False, called=lean_kernel(names["long"]))
        whole(self.state)
        (result,) = whole.overloads.values()
        lines = result.library.get_llvm_str().splitlines()
        assert not [line for line in lines if line.startswith("define") and "long" in line]

    def test_kernels_of_other_code_are_not_those_made_parts(self, tmp_path, monkeypatch):
        """If not: what calls such a kernel later finds one that takes other arguments."""
        monkeypatch.setattr("onebit.core.code_cache.roots", lambda: [tmp_path])
        names = {"sin": math.sin}
        exec(f"def long(x):\n v = x.values[0]\n {100 * 'v = sin(v);'}\n return v", names)
        long, by_hand = lean_kernel(names["long"]), names["long"](self.state)

        @lean_kernel
        def twice(x):  # so that it stays a function, with arguments as LLVM likes them
            return long(x) + long(x)

        whole = compiled("calls", calls, nogil=False, called=twice)
        assert whole(self.state) == pytest.approx(2.0 * by_hand)
        assert numba.njit(lambda x: long(x))(self.state) == pytest.approx(by_hand)

    def test_what_numba_has_for_numpy_is_optimised_in_what_calls_it_only(
        self, tmp_path, monkeypatch
    ):
        """If not: kernels that multiply matrices take a seventh longer to compile."""
        monkeypatch.setattr("onebit.core.code_cache.roots", lambda: [tmp_path])
        made = []
        monkeypatch.setattr(Part, "finalize", record(made, Part.finalize))

        @kernel
        def product(x):
            rare = np.full(x.values.size, np.complex64(2.0))  # compiled for no other test
            return np.dot(rare, rare).real

        whole = compiled("calls", calls, nogil=False, called=product)
        assert whole(self.state) == 8.0
        assert [name for name in made if name.startswith("dot_2_vv")]
        # Functions of Numba's own that call the same still find it, and nothing stays changed.
        assert numba.njit(lambda x: np.dot(x, x).real)(np.full(2, np.complex64(3.0))) == 18.0
        assert Compiler.compile_extra is CompilerBase.compile_extra

    def test_errors_of_kernels_reach_python(self, tmp_path, monkeypatch):
        """Also from what was loaded. If not: the process crashes, or the error is another."""
        monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))

        @kernel
        def fails(x):
            if x.n_features == 2:
                raise ValueError("two", x.n_features)
            return 0

        for _ in range(2):
            function = compiled("fails", calls, nogil=False, called=fails)
            with pytest.raises(ValueError, match=r"two.*2"):
                function(self.state)

    def test_what_is_compiled_separately_is_called_by_all_and_compiled_once(
        self, tmp_path, monkeypatch
    ):
        """Also from what was loaded. If not: OneBitClassifier compiles for each loop anew."""
        monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))

        @lean_kernel
        def scaled(x, out):
            if x.n_features < 0:
                raise ValueError("negative")
            for i in range(out.size):
                out[i] = 3.0 * x.values[i]
            return out.size

        for hits in (0, 1):
            separate = compiled_separately(
                "inner", call_received, self.signature[1:], numba.int64, inner=scaled
            )
            link(separate, self.signature)
            for name in ("call_inner", "call_again"):
                caller = compiled(name, globals()[name], nogil=False, inner=separate.call)
                call, out = entry_point(caller, self.signature), np.zeros(2)
                assert call(self.state, out) == 2
                assert out.tolist() == [3.0, 3.0]
                with pytest.raises(ValueError, match="negative"):
                    call(self.state._replace(n_features=-1), out)
                assert sum(caller.stats.cache_hits.values()) == hits
                if not hits:
                    (result,) = caller.overloads.values()
                    lines = result.library.get_llvm_str().splitlines()
                    assert not [
                        one for one in lines if one.startswith("define") and "scaled" in one
                    ]

    def test_code_for_another_process_can_call_what_is_not_there(self, tmp_path, monkeypatch):
        """If not: two processes that compile parts of one learner would wait for each other."""
        monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))

        @lean_kernel
        def size(x, out):
            return out.size

        types, out = self.signature[1:], np.zeros(3)
        separate = compiled_separately("inner", call_received, types, numba.int64, inner=size)
        link_nothing(separate, self.signature)
        caller = compiled("call_inner", call_inner, nogil=False, inner=separate.call)
        with pytest.raises(RuntimeError, match="unresolved"):
            entry_point(caller, self.signature)(self.state, out)
        link(separate, self.signature)
        loaded = compiled("call_inner", call_inner, nogil=False, inner=separate.call)
        assert entry_point(loaded, self.signature)(self.state, out) == 3
        assert sum(loaded.stats.cache_hits.values()) == 1

    def test_dispatchers_ask_their_cache(self, tmp_path, monkeypatch):
        """If not: every process compiles anew."""
        monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))

        def total(x):
            return x.values.sum()

        for hits in (0, 1):
            function = compiled("total", total, nogil=False)
            assert function(self.state) == 2.0
            assert sum(function.stats.cache_hits.values()) == hits
        assert len(list(tmp_path.glob("onebit/total-*/*.compiled"))) == 1


LOADED = """
import sys
import numpy as np
from onebit.core.compiling import called_from_python, counts

def all_kinds(A):
    if A.size == 9:
        raise ValueError("three", A.shape[0])
    drawn = np.random.random(A.size)
    return np.linalg.det(A) + np.exp(A - A).sum() + drawn.size

function = called_from_python(all_kinds)
print(function(np.eye(2)))
print(counts().loaded, "numba.cpython.heapq" in sys.modules)
try:
    function(np.eye(3))
except ValueError as error:
    print(error.args[1])
print(called_from_python(lambda x: x.sum())(np.ones(2)))
"""


def test_what_is_loaded_needs_nothing_of_what_compiles(package):
    """Numba loads all of that first, which takes longer than the rest. If not: starts are slow."""
    (package / "kinds.py").write_text(LOADED)
    environment = os.environ | {"PYTHONPATH": str(package), "NUMBA_CACHE_DIR": str(package)}
    compiled = run_python("import kinds", environment=environment, check=True).stdout
    assert " ".join(compiled.split()) == "9.0 0 True 3 2.0"
    # A fork of a process that knows all of Numba would not do.
    command = [sys.executable, "-c", "import kinds"]
    loaded = subprocess.check_output(command, env=environment, text=True)
    assert " ".join(loaded.split()) == "9.0 1 False 3 2.0"


def test_functions_are_numbered_from_anywhere_also_in_a_forked_child():
    """From one, as Numba counts, kernels of two processes could have the same name on disk."""
    first = next(FunctionIdentity._unique_ids)
    assert first > 2**20
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, str(next(FunctionIdentity._unique_ids)).encode())
        os._exit(0)
    os.waitpid(child, 0)
    assert abs(int(os.read(reading, 99)) - first) > 2**20
    os.close(reading)
    os.close(writing)
