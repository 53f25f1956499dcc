// The parts of the dashboard page, bundled at build time from static/ by bundle.py: "/" is the
// page, "/assets/NAME.DIGEST.ENDING" a part of it. A digest's bytes never change.
// Ownership: static storage; views never dangle.
// Threads:   any.
// Errors:    FindPageAsset: null for other paths.
#ifndef STAGECOACH_SERVICES_COORDINATOR_PAGE_PAGE_ASSETS_H_
#define STAGECOACH_SERVICES_COORDINATOR_PAGE_PAGE_ASSETS_H_

#include <string_view>

namespace stagecoach {

struct PageAsset {
  std::string_view path, content_type, body;
  std::string_view gzip;    // the same by gzip; empty if that is not smaller
  std::string_view digest;  // of the body, in hexadecimal
};

const PageAsset* FindPageAsset(std::string_view path);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COORDINATOR_PAGE_PAGE_ASSETS_H_
