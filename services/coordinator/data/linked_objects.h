// LinkedObjects: the parts of the catalog's linked sets, by name, and the URLs that read them.
// Ownership: borrows catalog and buckets.
// Threads:   thread-safe. The first call for a set waits for its manifest; those of the last
//            kMostSets sets are kept.
// Errors:    as DataCatalog and DataBuckets. PERMISSION_DENIED also: the prefix was taken from
//            --data-buckets since the set was made.
#ifndef STAGECOACH_SERVICES_COORDINATOR_DATA_LINKED_OBJECTS_H_
#define STAGECOACH_SERVICES_COORDINATOR_DATA_LINKED_OBJECTS_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "services/coordinator/data/data_buckets.h"
#include "services/coordinator/data/data_catalog.h"
#include "services/coordinator/store/linked_parts.h"

namespace stagecoach {

class LinkedObjects final : public LinkedParts {
 public:
  static constexpr size_t kMostSets = 8;

  LinkedObjects(DataCatalog* catalog, DataBuckets* buckets)
      : catalog_(*catalog), buckets_(*buckets) {}

  bool Has(const std::string& name) const override;
  absl::StatusOr<ObjectSize> Find(const std::string& name) override;
  absl::Status Locate(const v1::LocateObjectRequest& request, int64_t seconds,
                      v1::LocateObjectResponse* response) override;

 private:
  using Parts = std::map<std::string, v1::DataPart>;  // by digest
  absl::StatusOr<std::shared_ptr<const Parts>> PartsOf(const std::string& set);
  absl::StatusOr<v1::DataPart> PartOf(const std::string& name);

  DataCatalog& catalog_;
  DataBuckets& buckets_;
  std::mutex mutex_;  // guards what follows; held while a manifest is read
  std::map<std::string, std::shared_ptr<const Parts>> sets_;
  std::deque<std::string> order_;  // of sets_, the oldest first
};

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COORDINATOR_DATA_LINKED_OBJECTS_H_
