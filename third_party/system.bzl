"""Libraries that Debian packages install."""

_BUILD = """
package(default_visibility = ["//visibility:public"])

cc_library(
    name = "gflags",
    # Programs that are copied to another distribution have it with them.
    linkopts = [
        "-l:libgflags.a",
        "-lpthread",
    ],
)

cc_library(
    name = "gtest",
    linkopts = [
        "-lgmock",
        "-lgtest",
        "-lpthread",
    ],
)
"""

def _system_repository(ctx):
    ctx.file("BUILD", _BUILD)

system_repository = repository_rule(
    implementation = _system_repository,
    local = True,
)
