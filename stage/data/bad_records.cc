#include "stage/data/bad_records.h"

#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/errors/status.h"
#include "stage/data/picture_source.h"

namespace stagecoach {

std::string BadRecords::Text() const {
  if (count == 0) return "";
  const auto more = count - static_cast<int64_t>(reasons.size());
  return absl::StrCat(count, count == 1 ? " bad record" : " bad records",
                      " left out: ", absl::StrJoin(reasons, "; "),
                      more > 0 ? absl::StrCat("; and ", more, " more") : "");
}

void BadRecords::Add(const absl::Status& reason) {
  if (reasons.size() < kMostBadReasons) reasons.emplace_back(reason.message());
  ++count;
}

namespace {

// What could be otherwise on another machine or a moment later.
bool IsOfTheStorage(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsNotFound(status) ||
         absl::IsPermissionDenied(status);
}

}  // namespace

absl::StatusOr<std::shared_ptr<const PictureSet>> WithoutBadRecords(
    std::shared_ptr<const PictureSet> all, int64_t threads, Sha256* digest, BadRecords* bad) {
  std::vector<absl::Status> found(static_cast<size_t>(all->count()));
  RETURN_IF_ERROR(ForEachPicture(threads, all->count(), [&](int64_t i) {
    absl::Status& status = found[static_cast<size_t>(i)];
    status = all->Check(i);
    return IsOfTheStorage(status) ? status : absl::OkStatus();
  }));
  std::vector<int64_t> good;
  for (int64_t i = 0; i < all->count(); ++i) {
    const absl::Status& status = found[static_cast<size_t>(i)];
    if (status.ok()) {
      good.push_back(i);
      continue;
    }
    digest->Update(absl::StrCat("without ", i, "\n"));
    bad->Add(status);
  }
  if (std::ssize(good) == all->count()) return all;
  return std::make_shared<ChosenPictures>(std::move(all), std::move(good));
}

}  // namespace stagecoach
