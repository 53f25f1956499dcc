// A set's id, and what a shelf keeps beside parts and manifests, as text: a set's info, a v1.DataSet
// as JSON, and an owner's names, lines "NAME ID".
// Threads: pure functions.
// Errors:  DATA_LOSS with the place: it is no such text.
#ifndef STAGECOACH_SERVICES_COORDINATOR_DATA_SET_TEXTS_H_
#define STAGECOACH_SERVICES_COORDINATOR_DATA_SET_TEXTS_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "services/common/data_sets/data_manifest.h"
#include "services/coordinator/data/data_shelf.h"
#include "stagecoach/v1/data_sets.pb.h"

namespace stagecoach {

inline constexpr char kSetInfo[] = "info";
inline constexpr size_t kMostInfoBytes = size_t{1} << 20, kMostNamesBytes = size_t{64} << 20;

// The id of a set: nobody else's content has it. key: OwnerKey.
std::string SetId(const std::string& key, const std::string& manifest_sha256);
// What the manifest tells of a set; without its times.
v1::DataSet InfoOf(const std::string& id, const std::string& owner,
                   const CheckedManifest& manifest);

// Without name and jobs, which are not the set's own.
std::string InfoText(const v1::DataSet& set);
absl::StatusOr<v1::DataSet> ParseInfo(const std::string& text, const std::string& id,
                                      const std::string& place);
std::string NamesText(const DataShelf::Names& names);
absl::StatusOr<DataShelf::Names> ParseNames(const std::string& text, const std::string& place);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COORDINATOR_DATA_SET_TEXTS_H_
