#ifndef REQUANT_RUNTIME_DATASETS_CRITEO_CRITEO_GENERATOR_H_
#define REQUANT_RUNTIME_DATASETS_CRITEO_CRITEO_GENERATOR_H_

// Rows that look like the Criteo challenge's, drawn from a known distribution.
//
// A row's 39 values are drawn independently: categories from Zipf-like
// vocabularies of 3 to 100,000 tokens, numbers from skewed distributions, some
// of each missing. The label is 1 with probability sigmoid(score), where the
// score sums a weight per token, curves over numbers, and interactions of
// tokens with tokens and of tokens with numbers. Tokens that share one of 1000
// hash buckets share their weights, so a model that hashes into 1000 buckets
// can know all there is to know.
//
// The distribution is fixed; seed, split and row number decide what is drawn.
// They give the same row on any machine: it takes only integer arithmetic and
// IEEE operations that round one way only.

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "runtime/datasets/criteo/criteo_format.h"

namespace requant {

enum class CriteoSplit { kTrain = 0, kCalibration = 1, kEval = 2 };

// Returns the split of the name "train", "calibration" or "eval".
std::optional<CriteoSplit> CriteoSplitNamed(std::string_view name);

class CriteoGenerator {
 public:
  // Starts at row 0 of a split.
  CriteoGenerator(uint64_t seed, CriteoSplit split);
  ~CriteoGenerator();

  // Draws the next row; its views live as long as the generator. Returns the
  // probability with which its label was to be 1.
  double Next(CriteoRecord* record);

 private:
  struct World;

  const std::unique_ptr<const World> world_;
  const uint64_t stream_;
  uint64_t row_ = 0;
};

}  // namespace requant

#endif  // REQUANT_RUNTIME_DATASETS_CRITEO_CRITEO_GENERATOR_H_
