// The files of the dashboard page, embedded in the program at build time from static/:
// static/index.html is "/", static/app.js is "/assets/app.js", and Debian's Chart.js is
// "/assets/chart.min.js". A new file there needs no other edit.
// Ownership: static storage; views never dangle.
// Threads:   any.
// Errors:    FindPageAsset: null for a path that is none.
#ifndef STAGECOACH_SERVICES_COORDINATOR_PAGE_PAGE_ASSETS_H_
#define STAGECOACH_SERVICES_COORDINATOR_PAGE_PAGE_ASSETS_H_

#include <string_view>

namespace stagecoach {

struct PageAsset {
  std::string_view path, content_type, body;
};

const PageAsset* FindPageAsset(std::string_view path);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COORDINATOR_PAGE_PAGE_ASSETS_H_
