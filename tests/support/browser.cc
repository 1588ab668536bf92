#include "tests/support/browser.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/process/subprocess.h"
#include "base/status_macros.h"

namespace requant {
namespace {

namespace fs = std::filesystem;

constexpr double kSeconds = 120;

std::optional<std::string> FindBrowser() {
  for (const char* path : {"/usr/bin/chromium", "/usr/bin/chromium-browser",
                           "/usr/bin/google-chrome"}) {
    if (access(path, X_OK) == 0) return path;
  }
  return std::nullopt;
}

// Without a sandbox, which containers do not allow, and without the network.
std::vector<std::string> CommandLine(const std::string& browser,
                                     const std::string& profile) {
  return {browser,
          "--headless=new",
          "--no-sandbox",
          "--disable-gpu",
          "--disable-dev-shm-usage",
          "--no-first-run",
          "--disable-background-networking",
          "--disable-component-update",
          "--disable-sync",
          "--disable-quic",
          "--hide-scrollbars",
          "--allow-file-access-from-files",
          "--enable-logging=stderr",
          absl::StrCat("--user-data-dir=", profile)};
}

absl::StatusOr<RenderedPage> RunBrowser(const std::string& path,
                                        std::vector<std::string> flags) {
  const std::optional<std::string> browser = FindBrowser();
  if (!browser.has_value()) {
    return absl::NotFoundError(
        "no Chromium: ./requant test installs Debian's package");
  }
  std::string profile = absl::StrCat(std::getenv("TEST_TMPDIR"), "/XXXXXX");
  if (mkdtemp(profile.data()) == nullptr) {
    return absl::ErrnoToStatus(errno, profile);
  }
  absl::Cleanup remove = [&] {
    std::error_code error;
    fs::remove_all(profile, error);
  };
  RenderedPage page;
  ChildOptions options;
  options.argv = CommandLine(*browser, profile);
  options.argv.insert(options.argv.end(), flags.begin(), flags.end());
  options.argv.push_back(absl::StrCat("file://", fs::absolute(path).string()));
  options.environment = {{"HOME", profile}, {"XDG_CONFIG_HOME", profile}};
  options.timeout_seconds = kSeconds;
  options.on_stdout = [&](std::string_view line) {
    absl::StrAppend(&page.dom, line, "\n");
  };
  options.on_stderr = [&](std::string_view line) {
    if (absl::StrContains(line, "CONSOLE")) page.console.emplace_back(line);
  };
  REQUANT_ASSIGN_OR_RETURN(const ChildResult result, RunChild(options));
  if (result.exit_code != 0) {
    return absl::UnavailableError(
        absl::StrCat(*browser, " ", DescribeEnd(result, options)));
  }
  return page;
}

}  // namespace

absl::StatusOr<RenderedPage> Render(const std::string& path,
                                    const RenderOptions& options) {
  std::vector<std::string> flags = {
      absl::StrCat("--window-size=", options.width, ",", options.height),
      absl::StrCat("--blink-settings=preferredColorScheme=",
                   options.dark ? 0 : 1)};
  flags.push_back(options.screenshot.empty()
                      ? "--dump-dom"
                      : absl::StrCat("--screenshot=", options.screenshot));
  return RunBrowser(path, flags);
}

absl::Status CheckBrowser() {
  REQUANT_ASSIGN_OR_RETURN(const RenderedPage page,
                           RunBrowser("/dev/null", {"--dump-dom"}));
  if (absl::StrContains(page.dom, "<html")) return absl::OkStatus();
  return absl::UnavailableError("Chromium starts, but shows no page");
}

}  // namespace requant
