#include "services/common/convert/spec/data_places.h"

#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "base/errors/field_check.h"
#include "base/errors/status.h"
#include "base/job_name.h"
#include "base/utf8.h"
#include "plan/data/bucket_path.h"
#include "plan/data/data_set_path.h"
#include "plan/job/data_kinds.h"

namespace stagecoach {
namespace {

std::string Quoted(const std::string& text) { return absl::StrCat("\"", ShownName(text), "\""); }

// Where the paths of a message are.
class Place {
 public:
  Place(std::string field, const std::string& dataset, const std::string& on_stages)
      : field_(std::move(field)), dataset_(dataset), on_stages_(on_stages) {}

  bool given() const { return !dataset_.empty() || !on_stages_.empty(); }

  absl::Status Check() const {
    if (!dataset_.empty() && !on_stages_.empty()) {
      return FieldError(absl::StrCat(field_, ".dataset"),
                        absl::StrCat(Quoted(dataset_), ", and on_stages as well"),
                        "give one of them");
    }
    if (!dataset_.empty() && !IsDigest(dataset_) && !IsJobName(dataset_)) {
      return FieldError(absl::StrCat(field_, ".dataset"), Quoted(dataset_),
                        absl::StrCat("want a name of ", kJobNameRule,
                                     ", or an id; `stagecoach data list` shows them"));
    }
    if (!on_stages_.empty() && on_stages_.front() != '/') {
      return FieldError(absl::StrCat(field_, ".on_stages"), Quoted(on_stages_),
                        "want the absolute path of a folder beneath the stages' --data-root");
    }
    return absl::OkStatus();
  }

  // path: not empty.
  absl::StatusOr<std::string> PathOf(const std::string& field, const std::string& path) const {
    const char* const which = dataset_.empty() ? "on_stages" : "dataset";
    if (path.front() == '/' || IsClusterPath(path)) {
      return FieldError(field, Quoted(path),
                        absl::StrCat("with ", field_, ".", which,
                                     " paths are relative to it; leave one of the two out"));
    }
    absl::string_view relative = path;
    while (absl::ConsumePrefix(&relative, "./") || absl::ConsumeSuffix(&relative, "/")) {
    }
    if (relative == ".") relative = "";
    const std::string below(relative);
    if (dataset_.empty()) {
      return absl::StrCat(absl::StripSuffix(on_stages_, "/"), below.empty() ? "" : "/", below);
    }
    if (!below.empty()) {
      const absl::Status status = CheckPathInSet(below);
      if (!status.ok()) {
        return absl::Status(status.code(), absl::StrCat(field, ": ", status.message()));
      }
    }
    return DataSetPath{dataset_, below}.Text();
  }

 private:
  const std::string field_;  // "data"
  const std::string &dataset_, &on_stages_;
};

}  // namespace

absl::Status PlaceData(const v1::Data& proto, DataSpec* data) {
  const Place place("data", proto.dataset(), proto.on_stages());
  if (!place.given()) return absl::OkStatus();
  RETURN_IF_ERROR(place.Check());
  std::map<std::string, std::string> placed;
  for (const DataFile& file : DataFiles(*data)) {
    if (file.beside) continue;
    ASSIGN_OR_RETURN(placed[file.path], place.PathOf(DataFieldPath(*data, file), file.path));
  }
  ChangeDataPaths([&placed](const std::string& path) { return placed.at(path); }, data);
  return absl::OkStatus();
}

absl::Status PlaceInitialize(const v1::Initialize& proto, InitializeSpec* initialize) {
  const Place place("initialize", proto.dataset(), proto.on_stages());
  if (!place.given() || !initialize->given()) return absl::OkStatus();
  RETURN_IF_ERROR(place.Check());
  ASSIGN_OR_RETURN(initialize->from, place.PathOf("initialize.from", initialize->from));
  return absl::OkStatus();
}

}  // namespace stagecoach
