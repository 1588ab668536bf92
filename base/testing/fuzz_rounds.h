#ifndef REQUANT_BASE_TESTING_FUZZ_ROUNDS_H_
#define REQUANT_BASE_TESTING_FUZZ_ROUNDS_H_

#include <cstddef>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

namespace requant {

// Returns how many rounds a randomized test makes: `rounds`, multiplied by
// REQUANT_FUZZ_FACTOR in the long tests of ./requant test --full.
inline int FuzzRounds(int rounds) {
  const char* factor = std::getenv("REQUANT_FUZZ_FACTOR");
  return factor == nullptr ? rounds : rounds * std::atoi(factor);
}

// Returns `text`, never empty, after one to four changes: a byte is replaced,
// some are removed, or one of `pieces` or a part of the text is inserted.
inline std::string MutatedText(std::string text,
                               const std::vector<std::string>& pieces,
                               std::mt19937* random) {
  std::mt19937& draw = *random;
  for (int i = draw() % 4; i >= 0; --i) {
    const size_t at = draw() % text.size();
    switch (draw() % 4) {
      case 0:
        text[at] = static_cast<char>(draw());
        break;
      case 1:
        text.erase(at, draw() % 20);
        break;
      case 2:
        text.insert(at, pieces[draw() % pieces.size()]);
        break;
      default:
        text.insert(at, text.substr(draw() % text.size(), draw() % 40));
    }
    if (text.empty()) text = " ";
  }
  return text;
}

}  // namespace requant

#endif  // REQUANT_BASE_TESTING_FUZZ_ROUNDS_H_
