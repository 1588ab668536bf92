"""Several source files compiled as one, because most of a file's compile time is its headers."""

def _translation_units(ctx):
    units = []
    sources = ctx.files.srcs
    count = (len(sources) + ctx.attr.files_per_unit - 1) // ctx.attr.files_per_unit
    for i in range(count):
        # The units have equal sizes.
        part = sources[i * len(sources) // count:(i + 1) * len(sources) // count]
        unit = ctx.actions.declare_file("%s_%d.cc" % (ctx.label.name, i + 1))
        ctx.actions.write(unit, "".join(["#include \"%s\"\n" % source.short_path for source in part]))
        units.append(unit)
    return [DefaultInfo(files = depset(units))]

translation_units = rule(
    implementation = _translation_units,
    attrs = {
        "files_per_unit": attr.int(default = 6),
        "srcs": attr.label_list(allow_files = [".cc"]),
    },
)
