"""TensorFlow's C++ headers and libraries, as unpacked from its wheel."""

load("//third_party:versions.bzl", "installed_path", "read_versions")

# Programs link libtensorflow_framework (protobuf, absl, RE2, the graph and
# op registries; starts in 20 ms). libtensorflow_cc (kernels, op definitions,
# stock graph transforms; 200 ms) is opened at run time by
# //graph:tensorflow_library where it is needed, hence "data".
_BUILD = """
package(default_visibility = ["//visibility:public"])

# The same library in three parts, by what its headers are about: a package that has no
# part in graphs depends on absl or protobuf alone.
cc_library(
    name = "absl",
    srcs = ["lib/libtensorflow_framework.so.2"],
    hdrs = glob(["include/absl/**"]),
    defines = ["REQUANT_TENSORFLOW_VERSION=\\\\\\"{version}\\\\\\""],
    includes = ["include"],
    linkopts = [
        # Installed programs have the libraries in ../lib (docker/), or beside
        # Python's other packages (python/).
        "-Wl,-rpath,'$$ORIGIN/../lib',-rpath,'$$ORIGIN/../../tensorflow'",
        "-ldl",
        "-lpthread",
    ],
)

cc_library(
    name = "protobuf",
    hdrs = glob(["include/google/**"]),
    deps = [":absl"],
)

cc_library(
    name = "framework",
    hdrs = glob(
        ["include/%s/**" % d for d in [
            "Eigen",
            "external/com_googlesource_code_re2",
            "ml_dtypes",
            "tensorflow/c",
            "tensorflow/cc",
            "tensorflow/core",
            "third_party",
            "tsl",
            "unsupported",
            "xla",
        ]],
    ),
    data = ["lib/libtensorflow_cc.so.2"],
    defines = ["EIGEN_MAX_ALIGN_BYTES=64"],
    includes = ["include/external/com_googlesource_code_re2"],
    deps = [
        ":absl",
        ":protobuf",
    ],
)

# libtensorflow_framework exports the zlib that it was built with.
cc_library(
    name = "zlib",
    hdrs = [
        "include/external/zlib/zconf.h",
        "include/external/zlib/zlib.h",
    ],
    includes = ["include/external/zlib"],
    deps = [":framework"],
)
"""

def _tensorflow_repository(ctx):
    versions = read_versions(ctx)
    root = installed_path(ctx, "tensorflow")
    ctx.symlink(root.get_child("include"), "include")
    ctx.symlink(root.get_child("lib"), "lib")
    ctx.file("BUILD", _BUILD.replace("{version}", versions["TENSORFLOW_VERSION"]))

tensorflow_repository = repository_rule(
    implementation = _tensorflow_repository,
    local = True,
)
