#ifndef REQUANT_BASE_SANITIZED_H_
#define REQUANT_BASE_SANITIZED_H_

namespace requant {

// Whether this build uses the address sanitizer, whose tables exceed any memory
// limit.
#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kSanitized = true;
#elif defined(__has_feature)
inline constexpr bool kSanitized = __has_feature(address_sanitizer);
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace requant

#endif  // REQUANT_BASE_SANITIZED_H_
