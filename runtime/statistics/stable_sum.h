#ifndef REQUANT_RUNTIME_STATISTICS_STABLE_SUM_H_
#define REQUANT_RUNTIME_STATISTICS_STABLE_SUM_H_

#include <cmath>

namespace requant {

// A sum whose rounding error does not grow with the number of terms (Neumaier's
// compensated summation): a mean over billions of records is as good as one
// over ten. Infinite and NaN terms act as in plain addition.
class StableSum {
 public:
  void Add(double term) {
    const double sum = sum_ + term;
    // Keep what the addition lost from the smaller operand.
    if (std::abs(sum_) >= std::abs(term)) {
      lost_ += (sum_ - sum) + term;
    } else {
      lost_ += (term - sum) + sum_;
    }
    sum_ = sum;
  }

  double value() const { return std::isfinite(sum_) ? sum_ + lost_ : sum_; }

 private:
  double sum_ = 0;
  double lost_ = 0;
};

}  // namespace requant

#endif  // REQUANT_RUNTIME_STATISTICS_STABLE_SUM_H_
