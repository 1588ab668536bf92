#ifndef REQUANT_RUNTIME_STATISTICS_INTERVAL_H_
#define REQUANT_RUNTIME_STATISTICS_INTERVAL_H_

#include "runtime/evaluation.pb.h"

namespace requant {

inline Interval MakeInterval(double low, double high) {
  Interval interval;
  interval.set_low(low);
  interval.set_high(high);
  return interval;
}

}  // namespace requant

#endif  // REQUANT_RUNTIME_STATISTICS_INTERVAL_H_
