"""A rule that makes files part of a program."""

def cc_embedded_files(name, hdr, files, **kwargs):
    """A cc_library whose header has the content of files as constants.

    Args:
      name: the library's name.
      hdr: the header's name.
      files: from a constant's name to the label of a text file; they are inline
          constants of type std::string_view in namespace requant. No file may
          have `)REQUANT_FILE"` in it.
      **kwargs: passed on to cc_library.
    """
    guard = "REQUANT_EMBEDDED_%s_" % hdr.replace(".", "_").upper()
    lines = [
        "#ifndef %s" % guard,
        "#define %s" % guard,
        "#include <string_view>",
        "namespace requant {",
    ]
    commands = ["echo '%s'" % line for line in lines]
    for constant, label in files.items():
        commands += [
            "printf '%%s' 'inline constexpr std::string_view %s = R\"REQUANT_FILE('" % constant,
            "cat $(location %s)" % label,
            "echo ')REQUANT_FILE\";'",
        ]
    commands += [
        "echo '}  // namespace requant'",
        "echo '#endif'",
    ]
    native.genrule(
        name = name + "_gen",
        srcs = files.values(),
        outs = [hdr],
        cmd = "{ %s; } > $@" % "; ".join(commands),
    )
    native.cc_library(
        name = name,
        hdrs = [hdr],
        **kwargs
    )
