#ifndef REQUANT_BASE_TEXT_REQUANT_VERSION_H_
#define REQUANT_BASE_TEXT_REQUANT_VERSION_H_

namespace requant {

inline constexpr char kRequantVersion[] = "0.1.0";

}  // namespace requant

#endif  // REQUANT_BASE_TEXT_REQUANT_VERSION_H_
