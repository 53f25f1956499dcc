#include "services/coordinator/data/linked_objects.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/errors/status.h"
#include "base/utf8.h"
#include "plan/data/bucket_path.h"
#include "services/coordinator/store/object_names.h"

namespace stagecoach {
namespace {

struct SetPart {
  std::string set, part;  // empty: the name is no part's
};

// Of "data/sets/ID/SHA256".
SetPart Parse(const std::string& name) {
  const std::vector<std::string> names = absl::StrSplit(name, '/');
  if (AreaOf(name) != ObjectArea::kDataSet || names.size() != 4) return {};
  if (!IsDigest(names[2]) || !IsDigest(names[3])) return {};
  return {names[2], names[3]};
}

}  // namespace

bool LinkedObjects::Has(const std::string& name) const {
  const SetPart named = Parse(name);
  return !named.set.empty() && catalog_.IsLinked(named.set);
}

absl::StatusOr<std::shared_ptr<const LinkedObjects::Parts>> LinkedObjects::PartsOf(
    const std::string& set) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = sets_.find(set);
  if (found != sets_.end()) return found->second;
  ASSIGN_OR_RETURN(const CheckedManifest manifest, catalog_.Manifest(set));
  auto parts = std::make_shared<Parts>();
  for (const v1::DataPart& part : manifest.manifest().parts()) (*parts)[part.sha256()] = part;
  sets_[set] = parts;
  order_.push_back(set);
  if (order_.size() > kMostSets) {
    sets_.erase(order_.front());
    order_.pop_front();
  }
  return parts;
}

absl::StatusOr<v1::DataPart> LinkedObjects::PartOf(const std::string& name) {
  const SetPart named = Parse(name);
  ASSIGN_OR_RETURN(const std::shared_ptr<const Parts> parts, PartsOf(named.set));
  const auto found = parts->find(named.part);
  if (found != parts->end()) return found->second;
  return absl::NotFoundError(
      absl::StrCat("store object ", ShownName(name), ": the data set has no such part"));
}

absl::StatusOr<ObjectSize> LinkedObjects::Find(const std::string& name) {
  ASSIGN_OR_RETURN(const v1::DataPart part, PartOf(name));
  return ObjectSize{part.bytes(), /*complete=*/true};
}

absl::Status LinkedObjects::Locate(const v1::LocateObjectRequest& request, int64_t seconds,
                                   v1::LocateObjectResponse* response) {
  if (request.use() != v1::OBJECT_USE_READ) {
    return absl::PermissionDeniedError(
        absl::StrCat("store object ", ShownName(request.name()), ": data sets are only read"));
  }
  ASSIGN_OR_RETURN(const v1::DataPart part, PartOf(request.name()));
  ASSIGN_OR_RETURN(const BucketPath path, ParseBucketPath(part.source()));
  ASSIGN_OR_RETURN(std::string url, buckets_.PresignRead(path, seconds));
  response->add_urls(std::move(url));
  response->set_if_match(absl::StrCat("\"", part.etag(), "\""));
  response->set_source(part.source());
  return absl::OkStatus();
}

}  // namespace stagecoach
