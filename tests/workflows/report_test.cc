// Tests report.html as a browser shows it: it is drawn and says what
// results.json says, on wide and narrow screens, in light and dark mode.

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>
#include <string_view>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/process/subprocess.h"
#include "base/status_macros.h"
#include "google/protobuf/struct.pb.h"
#include "graph/testing/program.h"
#include "re2/re2.h"
#include "workflows/report/run_folder.h"
#include "workflows/run/run_record.pb.h"
#include "workflows/testing/example_runs.h"
#include "workflows/testing/json_value.h"

namespace requant::report_test {
namespace {

using google::protobuf::Value;

constexpr int kDesktop = 1280;
constexpr int kPhone = 390;

// A page with reports in frames, which inspects each of them and stores the
// findings as JSON. Unlike windows, frames may be as narrow as a phone.
constexpr char kProbe[] = R"(<!DOCTYPE html><html><body style="margin:0">
<!--FRAMES--><script type="application/json" id="probe"></script><script>
function look(frame) {
  const page = frame.contentDocument, root = page.documentElement;
  const all = (what) => [...page.querySelectorAll(what)];
  for (const details of all('details')) details.open = true;
  const beyond = (element) => element.getBoundingClientRect().right > root.clientWidth + 1;
  const drawn = (canvas) => canvas.width > 0 && canvas.height > 0 &&
    canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.some((v) => v);
  const figures = (rows, key) => all(rows).flatMap((row) => [...row.querySelectorAll('[data-figure]')].map((cell) => {
    const number = cell.querySelector('data');
    return {row: row.dataset[key], figure: cell.dataset.figure, text: cell.textContent, value: number && number.value};
  }));
  return {
    marks: {...root.dataset},
    hacked: 'hacked' in frame.contentWindow,
    canvases: all('canvas').length,
    blank: all('canvas').filter((canvas) => !drawn(canvas)).length,
    overflow: root.scrollWidth > root.clientWidth,
    beyond: all('canvas, h1, h2, p, section, .tile, .scroll, pre').filter(beyond).map((e) => e.tagName + '.' + e.className),
    background: frame.contentWindow.getComputedStyle(page.body).backgroundColor,
    title: page.querySelector('h1').textContent,
    outcome: page.getElementById('verdict').dataset.outcome,
    scripts: page.scripts.length,
    foreign: all('img, iframe, object, embed, [src], [onerror], [onclick], a:not([href^="#"])').length,
    unnamed: all('canvas:not([aria-label]), table:not(:has(caption))').length,
    stages: figures('#stage-table tbody tr', 'stage'),
    layers: figures('#layers tbody tr', 'layer'),
    commands: all('#reproduce pre').map((pre) => pre.textContent),
  };
}
window.onload = () => {
  const seen = {};
  for (const frame of document.querySelectorAll('iframe')) seen[frame.id] = look(frame);
  document.getElementById('probe').textContent = JSON.stringify(seen).replace(/</g, '\\u003c');
};
</script></body></html>)";

// A page as a browser shows it.
struct RenderedPage {
  // The document as HTML after its scripts have run.
  std::string dom;
  // The lines that pages and the browser wrote to the console.
  std::vector<std::string> console;
};

std::optional<std::string> FindBrowser() {
  for (const char* path : {"/usr/bin/chromium", "/usr/bin/chromium-browser",
                           "/usr/bin/google-chrome"}) {
    if (access(path, X_OK) == 0) return path;
  }
  return std::nullopt;
}

// Turn off the sandbox, which containers do not allow, and the network.
constexpr char kBrowserFlags[] =
    "--headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage "
    "--no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --disable-quic "
    "--hide-scrollbars --allow-file-access-from-files --enable-logging=stderr";

// Opens a file in a headless Chromium of its own, offline.
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
    std::filesystem::remove_all(profile, error);
  };
  RenderedPage page;
  ChildOptions options;
  options.argv = absl::StrSplit(kBrowserFlags, ' ');
  options.argv.insert(options.argv.begin(), *browser);
  options.argv.push_back("--user-data-dir=" + profile);
  options.argv.insert(options.argv.end(), flags.begin(), flags.end());
  options.argv.push_back(
      absl::StrCat("file://", std::filesystem::absolute(path).string()));
  options.environment = {{"HOME", profile}, {"XDG_CONFIG_HOME", profile}};
  options.timeout_seconds = 120;
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

// Fails with the reason unless there is a browser that starts.
absl::Status CheckBrowser() {
  REQUANT_ASSIGN_OR_RETURN(const RenderedPage page,
                           RunBrowser("/dev/null", {"--dump-dom"}));
  if (absl::StrContains(page.dom, "<html")) return absl::OkStatus();
  return absl::UnavailableError("Chromium starts, but shows no page");
}

// Returns a run with long names and with texts that look like markup.
RunRecord HostileRun() {
  RunRecord record = RefusedRun();
  AppendToEveryText(
      "</script><script>window.hacked = 1</script><img src=x "
      "onerror=window.hacked=1>'\"&\xe2\x80\xa8" +
          std::string(300, 'W'),
      &record);
  return record;
}

// Returns a run that is not certain, whose verified stages are also judged by
// squared errors.
RunRecord SquaredRun() {
  RunRecord record = PassedRun();
  record.set_outcome(RunRecord::INCONCLUSIVE);
  for (StageRecord& stage : *record.mutable_stage()) {
    if (stage.verification().gate_size() == 0) continue;
    stage.mutable_verification()->mutable_gate(0)->set_name("max_mse");
    EvaluateResult& result = *stage.mutable_verification()->mutable_result();
    result.mutable_comparison()->mutable_squared_change()->set_mean(0.0046);
    result.mutable_scores()->set_rmse(0.25);
  }
  return record;
}

const std::string& Text(const Value& value, std::string_view path) {
  return At(value, path).string_value();
}
double Number(const Value& value, std::string_view path) {
  return At(value, path).number_value();
}

struct Frame {
  std::string name;
  RunRecord record;
  int width = kDesktop;
};

// Two pages serve for all reports, because a browser takes seconds to start.
class Report : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    browser_ = new absl::Status(CheckBrowser());
    if (!browser_->ok()) return;
    folder_ = new TestFolder;
    bright_ = new Value(Look({{"passed", PassedRun()},
                              {"refused", RefusedRun()},
                              {"interrupted", InterruptedRun()},
                              {"one", OneStageRun()},
                              {"empty", RunRecord()},
                              {"squared", SquaredRun()},
                              {"hostile", HostileRun()},
                              {"phone", PassedRun(), kPhone},
                              {"phone_refused", RefusedRun(), kPhone},
                              {"phone_hostile", HostileRun(), kPhone}},
                             /*dark=*/false));
    dark_ = new Value(Look({{"dark", PassedRun(), kPhone}}, /*dark=*/true));
  }

  static void TearDownTestSuite() {
    delete folder_;
    folder_ = nullptr;
  }

  void SetUp() override {
    if (!browser_->ok()) GTEST_SKIP() << browser_->message();
  }

  // Returns the findings for the report of this name.
  static const Value& Seen(const std::string& name) {
    return At(name == "dark" ? *dark_ : *bright_, name);
  }

  static Value Results(const std::string& name) {
    return ParseJson(folder_->Read(absl::StrCat(name, "/results.json")));
  }

  static void ExpectDrawn(const Value& seen) {
    EXPECT_EQ(Text(seen, "marks/ready"), "true");
    EXPECT_EQ(At(seen, "marks").struct_value().fields().count("error"), 0);
    EXPECT_EQ(Text(seen, "marks/charts"),
              absl::StrCat(Number(seen, "canvases")));
    EXPECT_EQ(Number(seen, "blank"), 0);
    EXPECT_EQ(Number(seen, "unnamed"), 0);
  }

  static void ExpectNothingBeyondTheEdge(const Value& seen) {
    EXPECT_FALSE(At(seen, "overflow").bool_value());
    EXPECT_EQ(Text(seen, "marks/overflow"), "false");
    EXPECT_THAT(At(seen, "beyond").list_value().values(), IsEmpty())
        << At(seen, "beyond").DebugString();
  }

  static inline auto* const console_ = new std::vector<std::string>;

 private:
  static Value Look(const std::vector<Frame>& frames, bool dark) {
    std::string elements;
    for (const Frame& frame : frames) {
      std::filesystem::create_directories(folder_->Path(frame.name));
      EXPECT_TRUE(WriteRunFiles(frame.record, folder_->Path(frame.name)).ok());
      absl::StrAppend(&elements, "<iframe id=", frame.name, " src=", frame.name,
                      "/report.html style='border:0;height:800px;width:",
                      frame.width, "px'></iframe>");
    }
    const std::string probe = folder_->Write(
        "probe.html",
        absl::StrReplaceAll(kProbe, {{"<!--FRAMES-->", elements}}));
    const auto page = RunBrowser(
        probe,
        {"--window-size=1280,900", "--dump-dom",
         absl::StrCat("--blink-settings=preferredColorScheme=", dark ? 0 : 1)});
    EXPECT_TRUE(page.ok()) << page.status();
    if (!page.ok()) return Value();
    console_->insert(console_->end(), page->console.begin(),
                     page->console.end());
    std::string json;
    EXPECT_TRUE(
        RE2::PartialMatch(page->dom, "(?s)id=\"probe\">(.*?)</script>", &json));
    return ParseJson(json);
  }

  static inline absl::Status* browser_ = nullptr;
  static inline TestFolder* folder_ = nullptr;
  static inline Value* bright_ = nullptr;
  static inline Value* dark_ = nullptr;
};

// Returns the page's numbers by row and figure, without those shown as a dash.
std::map<std::pair<std::string, std::string>, double> Numbers(
    const Value& figures) {
  std::map<std::pair<std::string, std::string>, double> numbers;
  for (const Value& figure : figures.list_value().values()) {
    if (!At(figure, "value").has_string_value()) continue;
    double number = 0;
    EXPECT_TRUE(absl::SimpleAtod(Text(figure, "value"), &number));
    numbers[{Text(figure, "row"), Text(figure, "figure")}] = number;
  }
  return numbers;
}

TEST_F(Report, IsDrawn) {
  const Value& seen = Seen("passed");
  ExpectDrawn(seen);
  EXPECT_EQ(Number(seen, "canvases"), 12);
  EXPECT_EQ(Text(seen, "title"), "Passed");
  ExpectNothingBeyondTheEdge(seen);
}

TEST_F(Report, NumbersOfStagesAreThoseOfTheResults) {
  const Value& seen = Seen("passed");
  const Value results = Results("passed");
  auto shown = Numbers(At(seen, "stages"));
  int known = 0;
  for (const Value& stage : At(results, "stages").list_value().values()) {
    const std::string name = Text(stage, "name");
    for (const char* figure :
         {"seconds", "accuracy", "difference_points", "agreement",
          "mean_output_change", "records_per_second", "nodes", "bytes"}) {
      const Value& value = At(stage, absl::StrCat("figures/", figure));
      const auto number = shown.find({name, figure});
      ASSERT_EQ(number != shown.end(), value.has_number_value())
          << name << " " << figure;
      if (number == shown.end()) continue;
      EXPECT_EQ(number->second, value.number_value()) << name << " " << figure;
      ++known;
    }
  }
  EXPECT_EQ(known, shown.size());
  EXPECT_GT(known, 50);
}

TEST_F(Report, ShowsSquaredErrorsWhereAGateJudgesThem) {
  const Value& seen = Seen("squared");
  ExpectDrawn(seen);
  ExpectNothingBeyondTheEdge(seen);
  const auto shown = Numbers(At(seen, "stages"));
  ASSERT_EQ(shown.count({"fuse", "mse"}), 1);
  EXPECT_EQ(shown.at({"fuse", "mse"}), 0.0046);
  EXPECT_EQ(shown.at({"fuse", "rmse"}), 0.25);
  EXPECT_EQ(Numbers(At(Seen("passed"), "stages")).count({"fuse", "mse"}), 0);
}

TEST_F(Report, NumbersAreRoundedNotCut) {
  const Value& seen = Seen("passed");
  std::map<std::string, std::string> texts;
  for (const Value& figure : At(seen, "stages").list_value().values()) {
    if (Text(figure, "row") != "fuse") continue;
    texts[Text(figure, "figure")] = Text(figure, "text");
  }
  EXPECT_EQ(texts["accuracy"], "75.946\u00a0%");
  EXPECT_EQ(texts["difference_points"].substr(0, 8), "−0.016");
  EXPECT_EQ(texts["bytes"], "4.97\u00a0MB");
  EXPECT_EQ(texts["verdict"], "pass");
}

TEST_F(Report, NumbersOfLayersAreThoseOfTheLastQuantizedStage) {
  const Value& seen = Seen("passed");
  const auto shown = Numbers(At(seen, "layers"));
  const Value results = Results("passed");
  const Value& layers = At(results, "stages/11/verification/layers");
  ASSERT_EQ(layers.list_value().values_size(), 4);
  for (const Value& layer : layers.list_value().values()) {
    const std::string name = Text(layer, "name");
    for (const char* figure :
         {"signal_to_noise_db", "clipped_share", "clipped_records", "gain"}) {
      const auto number = shown.find({name, figure});
      ASSERT_NE(number, shown.end()) << name;
      EXPECT_EQ(number->second, Number(layer, figure));
    }
  }
}

TEST_F(Report, WorstLayersAreFirst) {
  const Value& seen = Seen("passed");
  double last = 0;
  for (const Value& figure : At(seen, "layers").list_value().values()) {
    if (Text(figure, "figure") != "signal_to_noise_db") continue;
    double decibels = 0;
    ASSERT_TRUE(absl::SimpleAtod(Text(figure, "value"), &decibels));
    EXPECT_GE(decibels, last);
    last = decibels;
  }
  EXPECT_GT(last, 0);
}

TEST_F(Report, HasEveryCommand) {
  const RunRecord record = PassedRun();
  const Value& seen = Seen("passed");
  ASSERT_EQ(At(seen, "commands").list_value().values_size(), 2);
  EXPECT_EQ(Text(seen, "commands/0"), record.command());
  const std::string& all = Text(seen, "commands/1");
  for (const StageRecord& stage : record.stage()) {
    for (const std::string& command : stage.work().command()) {
      EXPECT_THAT(all, HasSubstr(absl::StrCat(command, "\n")));
    }
  }
}

TEST_F(Report, CommandsAreBehindThoseWhoseFilesTheyRead) {
  const std::string& all = Text(Seen("passed"), "commands/1");
  EXPECT_LT(all.find("# summarize\n"), all.find("# raw/baseline\n"));
  EXPECT_LT(all.find("# raw/baseline\n"), all.find("# freeze\n"));
  EXPECT_LT(all.find("# freeze\n"), all.find("# freeze/verify\n"));
}

TEST_F(Report, SaysHowARunEndedAndWhere) {
  for (const auto& [name, title] : std::map<std::string, std::string>{
           {"refused", "Stopped at “fuse”"},
           {"interrupted", "Interrupted at “freeze_min”"},
           {"one", "Failed at “freeze”"},
           {"squared", "Not certain"},
           {"empty", "Not finished"}}) {
    ExpectDrawn(Seen(name));
    EXPECT_EQ(Text(Seen(name), "title"), title);
  }
  EXPECT_EQ(Text(Seen("refused"), "outcome"), "gate_failed");
  // Without numbers there are no charts.
  EXPECT_EQ(Number(Seen("one"), "canvases"), 1);
}

TEST_F(Report, FitsAPhone) {
  for (const char* name : {"phone", "phone_refused"}) {
    ExpectDrawn(Seen(name));
    ExpectNothingBeyondTheEdge(Seen(name));
  }
}

TEST_F(Report, FollowsTheDarkMode) {
  EXPECT_EQ(Text(Seen("phone"), "background"), "rgb(246, 247, 249)");
  EXPECT_EQ(Text(Seen("dark"), "background"), "rgb(17, 21, 28)");
  ExpectDrawn(Seen("dark"));
  ExpectNothingBeyondTheEdge(Seen("dark"));
}

TEST_F(Report, ShowsTextsAsTexts) {
  for (const char* name : {"hostile", "phone_hostile"}) {
    const Value& seen = Seen(name);
    ExpectDrawn(seen);
    EXPECT_FALSE(At(seen, "hacked").bool_value());
    EXPECT_EQ(Number(seen, "scripts"), 3);
    EXPECT_EQ(Number(seen, "foreign"), 0);
    ExpectNothingBeyondTheEdge(seen);
  }
}

TEST_F(Report, LeavesTheConsoleEmpty) { EXPECT_THAT(*console_, IsEmpty()); }

}  // namespace
}  // namespace requant::report_test
