"""Reads third_party/versions.env, the one place where versions stand."""

def read_versions(ctx):
    """Returns the NAME="value" lines of versions.env as a dict.

    Args:
      ctx: the repository context.
    """
    versions = {}
    for line in ctx.read(Label("//third_party:versions.env")).splitlines():
        if line and not line.startswith("#"):
            name, _, value = line.partition("=")
            versions[name] = value.strip('"')
    return versions

def installed_path(ctx, name):
    """Returns the path of .requant/<name>, where ./requant setup put it.

    Args:
      ctx: the repository context.
      name: the file or folder below .requant.
    """
    root = ctx.path(Label("//:WORKSPACE")).dirname
    path = root.get_child(".requant").get_child(name)
    if not path.exists:
        fail("%s is missing: run ./requant setup first" % path)
    return path
