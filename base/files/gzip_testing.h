// Gzipped: packs a text, for tests of unpacking.
#ifndef STAGECOACH_BASE_FILES_GZIP_TESTING_H_
#define STAGECOACH_BASE_FILES_GZIP_TESTING_H_

#include <isa-l/igzip_lib.h>

#include <string>

#include "base/errors/check.h"

namespace stagecoach {

inline std::string Gzipped(const std::string& text) {
  std::string packed(text.size() + text.size() / 8 + 4096, '\0');
  isal_zstream stream;
  isal_deflate_stateless_init(&stream);
  stream.gzip_flag = IGZIP_GZIP;
  stream.end_of_stream = 1;
  stream.next_in = reinterpret_cast<uint8_t*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uint32_t>(text.size());
  stream.next_out = reinterpret_cast<uint8_t*>(packed.data());
  stream.avail_out = static_cast<uint32_t>(packed.size());
  CHECK_EQ(isal_deflate_stateless(&stream), COMP_OK) << "packing";
  packed.resize(stream.total_out);
  return packed;
}

}  // namespace stagecoach

#endif  // STAGECOACH_BASE_FILES_GZIP_TESTING_H_
