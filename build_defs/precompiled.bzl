"""A header that is parsed once for all files that are compiled with it."""

load("@bazel_tools//tools/build_defs/cc:action_names.bzl", "CPP_COMPILE_ACTION_NAME")
load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")

def _precompiled_header(ctx):
    toolchain = find_cpp_toolchain(ctx)
    features = cc_common.configure_features(
        ctx = ctx,
        cc_toolchain = toolchain,
        requested_features = ctx.features,
        unsupported_features = ctx.disabled_features,
    )
    context = cc_common.merge_cc_infos(
        cc_infos = [dep[CcInfo] for dep in ctx.attr.deps],
    ).compilation_context
    precompiled = ctx.actions.declare_file(ctx.file.hdr.basename + ".gch")

    # gcc accepts the result only if its flags are those of the files.
    variables = cc_common.create_compile_variables(
        feature_configuration = features,
        cc_toolchain = toolchain,
        source_file = ctx.file.hdr.path,
        output_file = precompiled.path,
        user_compile_flags = ctx.fragments.cpp.copts + ctx.fragments.cpp.cxxopts + ctx.attr.copts +
                             ["-x", "c++-header"],
        include_directories = context.includes,
        quote_include_directories = context.quote_includes,
        system_include_directories = context.system_includes,
        preprocessor_defines = context.defines,
        use_pic = True,
    )
    ctx.actions.run(
        executable = cc_common.get_tool_for_action(
            feature_configuration = features,
            action_name = CPP_COMPILE_ACTION_NAME,
        ),
        arguments = cc_common.get_memory_inefficient_command_line(
            feature_configuration = features,
            action_name = CPP_COMPILE_ACTION_NAME,
            variables = variables,
        ),
        env = cc_common.get_environment_variables(
            feature_configuration = features,
            action_name = CPP_COMPILE_ACTION_NAME,
            variables = variables,
        ),
        inputs = depset([ctx.file.hdr], transitive = [context.headers]),
        tools = toolchain.all_files,
        outputs = [precompiled],
        mnemonic = "PrecompileHeader",
        progress_message = "Parsing the headers that most files share",
    )
    return [DefaultInfo(files = depset([precompiled]))]

_precompiled_header_rule = rule(
    implementation = _precompiled_header,
    attrs = {
        "copts": attr.string_list(),
        "deps": attr.label_list(providers = [CcInfo]),
        "hdr": attr.label(
            allow_single_file = [".h"],
            mandatory = True,
        ),
        "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
    },
    fragments = ["cpp"],
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
    incompatible_use_toolchain_transition = True,
)

def precompiled_header(name, **kwargs):
    """A library of a header NAME.h, parsed; empty where headers are not precompiled.

    Args:
      name: the library's name.
      **kwargs: what the header includes (deps), and the flags that the files are compiled with
          (copts).
    """
    _precompiled_header_rule(
        name = name + "_header",
        hdr = name + ".h",
        **kwargs
    )
    native.cc_library(
        name = name,
        hdrs = select({
            "//build_defs:asan": [],
            "//conditions:default": [":%s_header" % name],
        }),
    )
