#ifndef REQUANT_BASE_TESTING_FUZZ_ROUNDS_H_
#define REQUANT_BASE_TESTING_FUZZ_ROUNDS_H_

#include <cstdlib>

namespace requant {

// Returns how many rounds a randomised test makes: `rounds`, or that many times
// REQUANT_FUZZ_FACTOR in the long tests of ./requant test --full.
inline int FuzzRounds(int rounds) {
  const char* factor = std::getenv("REQUANT_FUZZ_FACTOR");
  return factor == nullptr ? rounds : rounds * std::atoi(factor);
}

}  // namespace requant

#endif  // REQUANT_BASE_TESTING_FUZZ_ROUNDS_H_
