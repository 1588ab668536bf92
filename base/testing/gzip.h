#ifndef REQUANT_BASE_TESTING_GZIP_H_
#define REQUANT_BASE_TESTING_GZIP_H_

#include <gtest/gtest.h>
#include <zlib.h>

#include <string>
#include <string_view>

namespace requant {

// Returns `bytes` as zlib compresses them, with gzip's wrapper or with none, as
// in a zip archive.
enum class ZlibWrapper { kNone = -MAX_WBITS, kGzip = MAX_WBITS + 16 };
inline std::string Packed(std::string_view bytes, ZlibWrapper wrapper) {
  z_stream stream = {};
  EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, static_cast<int>(wrapper), 8,
                         Z_DEFAULT_STRATEGY),
            Z_OK);
  std::string packed(deflateBound(&stream, bytes.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = bytes.size();
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = packed.size();
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

inline std::string Gzip(std::string_view bytes) {
  return Packed(bytes, ZlibWrapper::kGzip);
}

}  // namespace requant

#endif  // REQUANT_BASE_TESTING_GZIP_H_
