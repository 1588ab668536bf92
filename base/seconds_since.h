#ifndef REQUANT_BASE_SECONDS_SINCE_H_
#define REQUANT_BASE_SECONDS_SINCE_H_

#include <chrono>

namespace requant {

inline double SecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
      .count();
}

}  // namespace requant

#endif  // REQUANT_BASE_SECONDS_SINCE_H_
