"""Chart.js, which draws the reports' charts, from Debian's package."""

_SCRIPT = "/usr/share/javascript/chart.js/chart.min.js"

def _chart_js_repository(ctx):
    script = ctx.path(_SCRIPT)
    if not script.exists:
        fail("%s is missing: run ./requant setup first" % script)
    ctx.symlink(script, "chart.min.js")
    ctx.file("BUILD", 'exports_files(["chart.min.js"])')

chart_js_repository = repository_rule(
    implementation = _chart_js_repository,
    local = True,
)
