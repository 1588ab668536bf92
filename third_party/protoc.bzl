"""protoc, and a rule that compiles our own .proto files with it."""

load("//build_defs:defs.bzl", "precompiled_copts")
load("//third_party:versions.bzl", "installed_path", "read_versions")

def _protoc_repository(ctx):
    want = "libprotoc " + read_versions(ctx)["PROTOC_VERSION"]
    protoc = installed_path(ctx, "protoc")
    got = ctx.execute([protoc, "--version"]).stdout.strip()
    if got != want:
        fail("need %s, found %s: run ./requant setup" % (want, got))
    ctx.symlink(protoc, "protoc")
    ctx.file("BUILD", 'exports_files(["protoc"])')

protoc_repository = repository_rule(
    implementation = _protoc_repository,
    local = True,
)

def cc_proto(name, src, imports = [], deps = [], **kwargs):
    """A cc_library of the C++ classes that protoc generates.

    Args:
      name: the library's name.
      src: one .proto file of the same package.
      imports: the .proto files that it imports.
      deps: the cc_proto targets of those.
      **kwargs: passed on to cc_library.
    """
    base = src[:-len(".proto")]
    native.genrule(
        name = name + "_gen",
        srcs = [src] + imports,
        outs = [
            base + ".pb.h",
            base + ".pb.cc",
        ],
        cmd = "$(location @protoc//:protoc) -I. --cpp_out=$(GENDIR) $(location %s)" % src,
        tools = ["@protoc//:protoc"],
    )
    native.cc_library(
        name = name,
        srcs = [base + ".pb.cc"],
        hdrs = [base + ".pb.h"],
        copts = ["-w"] + precompiled_copts("precompiled"),
        deps = deps + [
            "//build_defs:precompiled",
            "@tensorflow//:framework",
        ],
        **kwargs
    )
