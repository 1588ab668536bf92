#ifndef REQUANT_TESTS_SUPPORT_BROWSER_H_
#define REQUANT_TESTS_SUPPORT_BROWSER_H_

// Pages as a browser shows them, for tests.

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace requant {

struct RenderedPage {
  // The document after its scripts ran, as HTML.
  std::string dom;
  // What pages and the browser wrote to the console, a line each.
  std::vector<std::string> console;
};

struct RenderOptions {
  bool dark = false;
  // Of the window; browsers have no windows narrower than about 500.
  int width = 1280;
  int height = 900;
  // A PNG file to write the picture to; empty: none.
  std::string screenshot;
};

// Whether there is a browser that starts; an error says what is the matter.
absl::Status CheckBrowser();

// Opens a file in a headless Chromium of its own, offline.
absl::StatusOr<RenderedPage> Render(const std::string& path,
                                    const RenderOptions& options = {});

}  // namespace requant

#endif  // REQUANT_TESTS_SUPPORT_BROWSER_H_
