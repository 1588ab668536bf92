"""What a package of Requant consists of: one library of its sources, one test program of its tests."""

load("//build_defs:units.bzl", "translation_units")

# Tests, and code that only they use, compile in about two thirds of the time if
# not optimized. The code under test is optimized.
TEST_COPTS = ["-O0", "-U_FORTIFY_SOURCE"]

# gcc is a tenth faster, with a tenth more memory, if it collects no garbage.
_NO_GARBAGE_COLLECTION = ["--param=ggc-min-heapsize=1000000"]

# What sources with each precompiled header of build_defs may include.
_INCLUDED = {
    None: [],
    "precompiled": ["@tensorflow//:framework"],
    "precompiled_absl": ["@tensorflow//:absl"],
    "precompiled_tests": ["@system//:gtest", "@tensorflow//:framework"],
}

def precompiled_copts(header):
    """Flags for sources that are compiled with a precompiled header of build_defs.

    Args:
      header: its name, or None.
    """
    return select({
        "//build_defs:asan": [],
        "//conditions:default": _NO_GARBAGE_COLLECTION + (TEST_COPTS if header == "precompiled_tests" else []) +
                                (["-Winvalid-pch", "-include", "$(GENDIR)/build_defs/%s.h" % header] if header else []),
    })

def _cc_units(name, srcs, deps, alone = [], precompiled = "precompiled", testonly = False, textual_hdrs = [], **kwargs):
    """A cc_library whose sources are compiled several at a time (units.bzl).

    Args:
      name: the library's name.
      srcs: its source files.
      deps: its dependencies, but for what comes with `precompiled`.
      alone: those of `srcs` that are compiled each by itself, because not every
          program that links the library wants what they define: flags, main.
      precompiled: which precompiled header of build_defs the sources are compiled with, if any.
          They may include TensorFlow's headers with "precompiled", absl's with "precompiled_absl".
      testonly: whether only tests use the library; then it is compiled as tests are.
      textual_hdrs: headers that are not self-contained.
      **kwargs: passed on to cc_library.
    """
    if testonly:
        precompiled = "precompiled_tests"
    together = [src for src in srcs if src not in alone]
    translation_units(
        name = name + "_unit",
        srcs = together,
        files_per_unit = 12 if testonly else 6,
        testonly = testonly,
    )
    deps = [] + deps
    for dep in _INCLUDED[precompiled] + (["//build_defs:" + precompiled] if precompiled else []):
        if dep not in deps:
            deps.append(dep)
    native.cc_library(
        name = name,
        testonly = testonly,
        srcs = alone + select({
            "//build_defs:single_files": together,
            "//conditions:default": [":%s_unit" % name],
        }),
        copts = precompiled_copts(precompiled),
        textual_hdrs = together + textual_hdrs,
        deps = deps,
        **kwargs
    )

def requant_library(name = None, srcs = None, hdrs = None, exclude = [], deps = [], **kwargs):
    """The library of a package: all its sources but tests and main functions.

    Args:
      name: the library's name; the package's, if not given.
      srcs: its source files; all of the package, if not given.
      hdrs: its headers; all of the package, if not given.
      exclude: files of the package that belong to other targets of it.
      deps: its dependencies, but for TensorFlow (see `precompiled`).
      **kwargs: passed on to _cc_units.
    """
    _cc_units(
        name = name or native.package_name().split("/")[-1],
        srcs = native.glob(["*.cc"], exclude = ["*_test.cc", "*_main.cc"] + exclude) if srcs == None else srcs,
        hdrs = native.glob(["*.h"], exclude = exclude) if hdrs == None else hdrs,
        deps = deps,
        **kwargs
    )

def requant_tests(name, srcs = None, exclude = [], deps = [], programs = {}, **kwargs):
    """The tests of a package, as one program, or as several that run a part of the cases each.

    Args:
      name: the name of the test that runs what no other of `programs` runs.
      srcs: the test files; all of the package, if not given.
      exclude: test files of the package that belong to other targets of it.
      deps: what the tests need, but for TensorFlow and GoogleTest.
      programs: from the name of a further test to its attributes for cc_test, with
          `cases`: a pattern of --gtest_filter that says which cases it runs, and
          `again`: whether the test `name` runs them too.
      **kwargs: passed on to each cc_test.
    """
    _cc_units(
        name = name + "_cases",
        testonly = True,
        srcs = native.glob(["*_test.cc"], exclude = exclude) if srcs == None else srcs,
        deps = deps,
        alwayslink = True,
    )
    elsewhere = []
    for program, attributes in programs.items():
        attributes = dict(kwargs, **attributes)
        cases = attributes.pop("cases")
        if not attributes.pop("again", False):
            elsewhere.append(cases)
        native.cc_test(
            name = program,
            args = ["--gtest_filter=" + cases],
            deps = [":%s_cases" % name, "//build_defs:test_main"],
            **attributes
        )
    native.cc_test(
        name = name,
        args = ["--gtest_filter=-" + ":".join(elsewhere)] if elsewhere else [],
        deps = [":%s_cases" % name, "//build_defs:test_main"],
        **kwargs
    )

def requant_program(name, src = None, deps = [], **kwargs):
    """A program, whose source is called like it with _main.

    Args:
      name: the program's name.
      src: its source file, if it is called otherwise.
      deps: what it needs, but for TensorFlow.
      **kwargs: passed on to cc_binary.
    """
    native.cc_binary(
        name = name,
        srcs = [src or name + "_main.cc"],
        copts = precompiled_copts("precompiled"),
        visibility = ["//visibility:public"],
        deps = deps + _INCLUDED["precompiled"] + ["//build_defs:precompiled"],
        **kwargs
    )
