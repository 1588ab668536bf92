#ifndef REQUANT_LAUNCH_RESULT_H_
#define REQUANT_LAUNCH_RESULT_H_

// Errors without absl, which comes with TensorFlow.

#include <string>
#include <utility>
#include <variant>

namespace requant::launch {

// Says what stands in the way, in one sentence for the user, without a full
// stop.
struct Failure {
  std::string message;
};

// A value, or why there is none.
template <typename T>
class Result {
 public:
  // Implicit, so that a function returns either.
  Result(T value) : content_(std::move(value)) {}
  Result(Failure failure) : content_(std::move(failure)) {}

  bool ok() const { return std::holds_alternative<T>(content_); }

  // Only when ok().
  const T& operator*() const { return std::get<T>(content_); }
  const T* operator->() const { return &std::get<T>(content_); }

  // Only when not ok().
  const Failure& failure() const { return std::get<Failure>(content_); }

 private:
  std::variant<T, Failure> content_;
};

}  // namespace requant::launch

#endif  // REQUANT_LAUNCH_RESULT_H_
