#include <algorithm>
#include <cmath>
#include <memory>

#include "runtime/datasets/criteo/criteo_format.h"

// This file is compiled with -ffp-contract=off: a fused multiply-add rounds
// differently. It uses only exact functions of the math library.

namespace requant {
namespace {

constexpr int64_t kWeightGroups = 1000;
constexpr int kTokenLength = 8;

// Keeps the uses of one hash function separate.
enum Purpose : uint64_t {
  kStream = 1,
  kRow,
  kToken,
  kLinearWeight,
  kTraitA,
  kTraitB,
};

uint64_t Mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

uint64_t Hash(uint64_t purpose, uint64_t a, uint64_t b = 0) {
  return Mix(Mix(Mix(purpose) ^ a) ^ b);
}

// The SplitMix64 generator.
class Random {
 public:
  explicit Random(uint64_t state) : state_(state) {}
  uint64_t Next() {
    const uint64_t bits = Mix(state_);
    state_ += 0x9e3779b97f4a7c15u;
    return bits;
  }

 private:
  uint64_t state_;
};

// Returns a number in [0, 1).
double Uniform(uint64_t bits) {
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

// Returns a nearly normal number with mean 0 and variance 1, the sum of four
// 16-bit uniforms. It is within +-3.47, which bounds the numeric columns.
double Bell(uint64_t bits) {
  const uint64_t sum = (bits & 0xffff) + ((bits >> 16) & 0xffff) +
                       ((bits >> 32) & 0xffff) + (bits >> 48);
  constexpr double kSqrt3 = 1.7320508075688772;
  return (static_cast<double>(sum) * 0x1p-16 - 2.0 + 0x1p-15) * kSqrt3;
}

// Is accurate to 1e-15 and, unlike the library's, the same everywhere.
double Exp(double x) {
  const double k = std::floor(x * 1.4426950408889634 + 0.5);
  const double r = x - k * 0.6931471805599453;
  double sum = 1.0;
  for (int i = 14; i > 0; --i) sum = 1.0 + sum * r / i;
  return std::ldexp(sum, static_cast<int>(k));
}

double Sigmoid(double x) { return 1.0 / (1.0 + Exp(-x)); }

// The exponent with which the frequency of the r-th token falls, as (r +
// flat)^-exponent. These exponents have exact powers.
enum class Decay { kHalf, kOne, kOneAndHalf };

struct CategoricalSpec {
  int tokens;
  Decay decay;
  double flat;
  int missing_per_thousand;
  // The first token is drawn with the additional probability
  // common_per_thousand / 1000.
  int common_per_thousand;
  // The standard deviation of the linear weights.
  double weight;
};

// In four columns one token is common and a long tail of rare ones matters,
// which a weight per bucket learns early and embeddings learn late. The columns
// with few tokens are those that interact.
constexpr std::array<CategoricalSpec, kCategoricalColumns> kCategorical = {{
    {300, Decay::kOne, 20, 0, 0, 0.37},             // C1
    {200, Decay::kHalf, 5, 0, 0, 0.37},             // C2
    {100000, Decay::kOne, 300, 34, 780, 0.78},      // C3
    {60000, Decay::kOneAndHalf, 20, 34, 0, 0.37},   // C4
    {305, Decay::kOne, 10, 0, 0, 0.37},             // C5
    {24, Decay::kOne, 3, 121, 0, 0.3},              // C6
    {800, Decay::kOne, 10, 0, 500, 0.3},            // C7
    {250, Decay::kHalf, 10, 0, 0, 0.37},            // C8
    {3, Decay::kOne, 1, 0, 0, 0.3},                 // C9
    {20000, Decay::kOneAndHalf, 20, 0, 500, 0.3},   // C10
    {300, Decay::kOne, 10, 0, 500, 0.3},            // C11
    {80000, Decay::kOne, 300, 34, 780, 0.78},       // C12
    {400, Decay::kOne, 10, 0, 0, 0.37},             // C13
    {27, Decay::kHalf, 3, 0, 0, 0.3},               // C14
    {500, Decay::kOne, 10, 0, 500, 0.3},            // C15
    {70000, Decay::kOne, 300, 34, 780, 0.78},       // C16
    {10, Decay::kHalf, 1, 0, 0, 0.3},               // C17
    {350, Decay::kOne, 20, 0, 500, 0.3},            // C18
    {250, Decay::kHalf, 30, 440, 0, 0.37},          // C19
    {4, Decay::kHalf, 1, 440, 0, 0.3},              // C20
    {75000, Decay::kOne, 300, 34, 780, 0.78},       // C21
    {18, Decay::kOneAndHalf, 2, 762, 0, 0.3},       // C22
    {15, Decay::kHalf, 2, 0, 0, 0.3},               // C23
    {50000, Decay::kOneAndHalf, 20, 34, 0, 0.37},   // C24
    {105, Decay::kOne, 5, 440, 0, 0.37},            // C25
    {5000, Decay::kOneAndHalf, 20, 440, 250, 0.3},  // C26
}};

struct NumericSpec {
  // A value is lowest + floor(median * exp(skew * bell)).
  int lowest;
  double median;
  double skew;
  int missing_per_thousand;
  // How much the score rises from the middle to very large values.
  double rise;
};

constexpr std::array<NumericSpec, kNumericColumns> kNumeric = {{
    {0, 12, 0.6, 450, 0.70},     // I1
    {-12, 40, 0.5, 0, 2.20},     // I2
    {0, 25, 0.6, 214, 0.50},     // I3
    {0, 18, 0.6, 216, 0.00},     // I4
    {0, 2000, 0.55, 26, -2.20},  // I5
    {0, 150, 0.6, 224, -0.70},   // I6
    {0, 30, 0.5, 43, 2.20},      // I7
    {0, 35, 0.5, 1, 0.00},       // I8
    {0, 110, 0.5, 43, -1.70},    // I9
    {0, 4, 0.5, 450, 0.50},      // I10
    {0, 9, 0.5, 43, 1.70},       // I11
    {-2, 6, 0.5, 765, 0.50},     // I12
    {0, 24, 0.6, 216, -0.70},    // I13
}};

struct Pair {
  int first;
  int second;
  double weight;
};

// Products of two tokens' traits (columns from 0).
constexpr Pair kTokenPairs[] = {
    {8, 16, 0.6},   // C9, C17
    {13, 22, 0.6},  // C14, C23
};

// Products of a token's trait and a number's curve.
constexpr Pair kTokenNumberPairs[] = {
    {8, 1, 1.6},   // C9, I2
    {16, 6, 1.2},  // C17, I7
};

constexpr double kIntercept = -0.25;

struct Token {
  std::array<char, kTokenLength> text;
  int length;
  double linear;
  double trait_a;
  double trait_b;

  std::string_view view() const {
    return std::string_view(text.data(), length);
  }
};

void SetWeights(int column, Token* token) {
  const int64_t group = HashBucket(token->view(), kWeightGroups);
  token->linear =
      kCategorical[column].weight * Bell(Hash(kLinearWeight, column, group));
  token->trait_a = Bell(Hash(kTraitA, column, group));
  token->trait_b = Bell(Hash(kTraitB, column, group));
}

Token MakeToken(int column, int index) {
  constexpr char kDigits[] = "0123456789abcdef";
  Token token;
  uint64_t bits = Hash(kToken, column, index);
  for (char& c : token.text) {
    c = kDigits[bits & 15];
    bits >>= 4;
  }
  token.length = kTokenLength;
  SetWeights(column, &token);
  return token;
}

double Frequency(const CategoricalSpec& spec, int rank) {
  const double x = rank + spec.flat;
  switch (spec.decay) {
    case Decay::kHalf:
      return 1.0 / std::sqrt(x);
    case Decay::kOne:
      return 1.0 / x;
    case Decay::kOneAndHalf:
      return 1.0 / (x * std::sqrt(x));
  }
  return 0.0;
}

struct Vocabulary {
  std::vector<Token> tokens;
  // 32-bit numbers in [starts[i], starts[i + 1]) draw token i.
  std::vector<uint32_t> starts;
  Token missing;

  explicit Vocabulary(int column) {
    const CategoricalSpec& spec = kCategorical[column];
    double total = 0;
    for (int i = 0; i < spec.tokens; ++i) total += Frequency(spec, i);
    const double common = spec.common_per_thousand / 1000.0;
    double sum = 0;
    for (int i = 0; i < spec.tokens; ++i) {
      tokens.push_back(MakeToken(column, i));
      const double before =
          i == 0 ? 0.0 : common + (1.0 - common) * (sum / total);
      starts.push_back(static_cast<uint32_t>(before * 0x1p32));
      sum += Frequency(spec, i);
    }
    missing.length =
        kMissingCategorical.copy(missing.text.data(), kTokenLength);
    SetWeights(column, &missing);
    if (spec.common_per_thousand > 0) SetNeutral(tokens[0].view());
  }

  // Makes weights relative to the tokens of the group of `common`, so that the
  // score of a row of common tokens is the intercept.
  void SetNeutral(std::string_view common) {
    const int64_t group = HashBucket(common, kWeightGroups);
    for (Token& token : tokens) {
      if (HashBucket(token.view(), kWeightGroups) == group) token.linear = 0;
    }
  }

  const Token& At(uint32_t bits) const {
    const auto after = std::upper_bound(starts.begin(), starts.end(), bits);
    return tokens[after - starts.begin() - 1];
  }
};

bool IsMissing(uint32_t bits, int per_thousand) {
  return (static_cast<uint64_t>(bits) * 1000 >> 32) <
         static_cast<uint64_t>(per_thousand);
}

// Below this fraction of the median, all numbers have the same effect, so that
// missing ones (treated as 0) act like the smallest.
constexpr double kLowEnd = 0.25;

// Returns where a value lies between small (-0.6) and very large ones (+1); the
// median is in the middle. A missing value must be filled in, as models see it.
double Position(const NumericSpec& spec, double value) {
  const double x = std::max((value - spec.lowest) / spec.median, kLowEnd);
  return 2.0 * x / (x + 1.0) - 1.0;
}

using Positions = std::array<double, kNumericColumns>;
using Tokens = std::array<const Token*, kCategoricalColumns>;

Positions DrawNumbers(Random* random, CriteoRecord* record) {
  Positions positions;
  record->missing_numeric = 0;
  for (int i = 0; i < kNumericColumns; ++i) {
    const NumericSpec& spec = kNumeric[i];
    const double bell = Bell(random->Next());
    double value =
        spec.lowest + std::floor(spec.median * Exp(spec.skew * bell));
    if (IsMissing(static_cast<uint32_t>(random->Next()),
                  spec.missing_per_thousand)) {
      record->missing_numeric |= 1u << i;
      value = kMissingNumeric;
    }
    record->numeric[i] = static_cast<float>(value);
    positions[i] = Position(spec, value);
  }
  return positions;
}

Tokens DrawTokens(const std::vector<Vocabulary>& vocabularies, Random* random,
                  CriteoRecord* record) {
  Tokens tokens;
  for (int i = 0; i < kCategoricalColumns; ++i) {
    const uint64_t bits = random->Next();
    const bool missing = IsMissing(static_cast<uint32_t>(bits),
                                   kCategorical[i].missing_per_thousand);
    tokens[i] = missing
                    ? &vocabularies[i].missing
                    : &vocabularies[i].At(static_cast<uint32_t>(bits >> 32));
    record->categorical[i] = tokens[i]->view();
  }
  return tokens;
}

double Score(const Positions& positions, const Tokens& tokens) {
  double score = kIntercept;
  for (int i = 0; i < kNumericColumns; ++i) {
    score += kNumeric[i].rise * positions[i];
  }
  for (const Token* token : tokens) score += token->linear;
  for (const Pair& pair : kTokenPairs) {
    score += pair.weight * tokens[pair.first]->trait_a *
             tokens[pair.second]->trait_b;
  }
  for (const Pair& pair : kTokenNumberPairs) {
    score += pair.weight * tokens[pair.first]->trait_a * positions[pair.second];
  }
  return score;
}

}  // namespace

CriteoGenerator MakeCriteoGenerator(uint64_t seed, CriteoSplit split) {
  auto vocabularies = std::make_shared<std::vector<Vocabulary>>();
  for (int i = 0; i < kCategoricalColumns; ++i) vocabularies->emplace_back(i);
  const uint64_t stream = Hash(kStream, seed, static_cast<uint64_t>(split));
  return
      [vocabularies, stream, row = uint64_t{0}](CriteoRecord* record) mutable {
        Random random(Hash(kRow, stream, row++));
        const Positions positions = DrawNumbers(&random, record);
        const Tokens tokens = DrawTokens(*vocabularies, &random, record);
        const double probability = Sigmoid(Score(positions, tokens));
        record->label = Uniform(random.Next()) < probability ? 1 : 0;
        return probability;
      };
}

}  // namespace requant
