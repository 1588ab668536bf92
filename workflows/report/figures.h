#ifndef REQUANT_WORKFLOWS_REPORT_FIGURES_H_
#define REQUANT_WORKFLOWS_REPORT_FIGURES_H_

// The list of the figures that runs are compared by. Whatever shows figures
// (results.json, results.csv, TensorBoard's file, the tables and lines of the
// terminal) takes them from here: a new one is a row.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/statistics/paired_comparison.h"
#include "workflows/report/stage_figures.h"

namespace requant {

// "78.455 %", of a share of 1.
std::string AccuracyText(double share);
// "-0.054"; never "-0.000".
std::string PointsText(double points);
// "0.9987".
std::string AgreementText(double share);
// "0.00213".
std::string ChangeText(double change);

// How figures are shown. Where a title is null, they are not.

// A curve of TensorBoard, and a column of its table of stages, which has the
// figure times `factor`.
struct FigureCurve {
  const char* tag = nullptr;
  const char* help = nullptr;
  const char* title = nullptr;
  double factor = 1;
  int decimals = 0;
};

// A column of the table at a run's end, and one for the interval. The least
// important is the first to go on a narrow terminal.
struct FigureColumn {
  const char* title = nullptr;
  int importance = 0;
  const char* interval_title = nullptr;
  int interval_importance = 0;
};

// A column of the display while a run lasts. There, 0 is the last to go.
struct FigureLineColumn {
  const char* title = nullptr;
  int width = 0;
  int importance = 0;
};

struct Figure {
  // In results.json and results.csv.
  const char* key;
  // Its interval's in results.json; null: it has none.
  const char* interval_key;
  // Unset: it is not known of the stage.
  std::optional<Estimate> (*of)(const StageFigures&);
  // As people read it.
  std::string (*text)(double);
  FigureCurve curve = {};
  FigureColumn column = {};
  FigureLineColumn line = {};
  // The word in front of it where there are no columns; null: it is not shown
  // there.
  const char* word = nullptr;
  // Whether results.json has it as an object of the ratio and its interval.
  bool is_ratio = false;
};

// In the order in which they are shown.
const std::vector<Figure>& Figures();

// The figure with that key.
std::optional<Estimate> FigureOf(const StageFigures& stage,
                                 std::string_view key);
// The same as people read it; "" if it is not known.
std::string FigureText(const StageFigures& stage, const Figure& figure);

}  // namespace requant

#endif  // REQUANT_WORKFLOWS_REPORT_FIGURES_H_
