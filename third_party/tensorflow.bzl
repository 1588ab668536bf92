"""TensorFlow's C++ headers and libraries, as unpacked from its wheel."""

load("//third_party:versions.bzl", "installed_path", "read_versions")

# Programs link libtensorflow_framework (protobuf, absl, RE2, the graph and
# op registries; starts in 20 ms). libtensorflow_cc (kernels, op definitions,
# stock graph transforms; 200 ms) is opened at run time by
# //graph:tensorflow_library where it is needed, hence "data".
_BUILD = """
package(default_visibility = ["//visibility:public"])

cc_library(
    name = "framework",
    srcs = ["lib/libtensorflow_framework.so.2"],
    hdrs = glob(
        ["include/%s/**" % d for d in [
            "Eigen",
            "absl",
            "external/com_googlesource_code_re2",
            "google",
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
    defines = [
        "EIGEN_MAX_ALIGN_BYTES=64",
        "REQUANT_TENSORFLOW_VERSION=\\\\\\"{version}\\\\\\"",
    ],
    includes = [
        "include",
        "include/external/com_googlesource_code_re2",
    ],
    linkopts = [
        # Installed programs (docker/) have the libraries in ../lib.
        "-Wl,-rpath,'$$ORIGIN/../lib'",
        "-ldl",
        "-lpthread",
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
