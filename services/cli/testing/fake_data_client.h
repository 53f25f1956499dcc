// FakeDataClient: a cluster's store of data sets in memory for tests of the commands. The id of a set
// is the digest of its manifest.
#ifndef STAGECOACH_SERVICES_CLI_TESTING_FAKE_DATA_CLIENT_H_
#define STAGECOACH_SERVICES_CLI_TESTING_FAKE_DATA_CLIENT_H_

#include <cstring>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/files/hash.h"
#include "services/cli/client/data_client.h"
#include "services/common/data_sets/data_manifest.h"
#include "services/common/s3/s3_client.h"

namespace stagecoach {

class FakeDataClient final : public DataClient {
 public:
  struct Object {
    std::string bytes;
    bool complete = false;
    std::vector<v1::UploadedPart> uploaded = {};  // that `bytes` are of; in a bucket
  };
  std::map<std::string, Object> parts;      // by digest
  std::map<std::string, v1::DataSet> sets;  // by id
  std::set<std::string> in_use;             // ids
  absl::Status reachable;                   // of all calls
  int appends = 0, appends_left = -1;       // until the connection is cut; negative: never
  std::function<void()> on_append, on_put;  // before each
  std::string write_grant = "write";
  bool direct = false;  // as a bucket, which compares no digest

  absl::StatusOr<v1::PrepareUploadResponse> PrepareUpload(
      const v1::PrepareUploadRequest& request) override {
    if (!reachable.ok()) return reachable;
    v1::PrepareUploadResponse response;
    response.set_folder("data/parts/_");
    response.set_grant(write_grant);
    for (int i = 0; i < request.parts_size(); ++i) {
      const auto found = parts.find(request.parts(i).sha256());
      if (request.again() && found != parts.end()) found->second = {};
      if (found == parts.end() || !found->second.complete) response.add_missing(i);
    }
    return response;
  }
  absl::StatusOr<v1::PutDataSetResponse> Put(const v1::PutDataSetRequest& request) override {
    if (!reachable.ok()) return reachable;
    if (on_put) on_put();
    const std::string& id = request.manifest_sha256();
    const auto manifest = CheckedManifest::Parse(parts[id].bytes);
    if (!manifest.ok()) return manifest.status();
    for (const v1::DataPart& part : manifest->manifest().parts()) {
      if (!parts[part.sha256()].complete) return absl::FailedPreconditionError("a part is missing");
    }
    for (auto& [other, set] : sets) {
      if (request.name().empty() || set.name() != request.name() || other == id) continue;
      if (!request.replace()) return absl::AlreadyExistsError("data set " + request.name());
      set.clear_name();
    }
    v1::DataSet& set = sets[id];
    set.set_id(id);
    if (!request.name().empty()) set.set_name(request.name());
    set.set_title(manifest->manifest().files(0).path());
    set.set_files(manifest->manifest().files_size());
    set.set_bytes(manifest->bytes());
    v1::PutDataSetResponse response;
    *response.mutable_data_set() = set;
    return response;
  }
  absl::StatusOr<v1::ListDataSetsResponse> List() override {
    if (!reachable.ok()) return reachable;
    v1::ListDataSetsResponse response;
    for (const auto& [id, set] : sets) *response.add_data_sets() = set;
    return response;
  }
  absl::StatusOr<v1::OpenDataSetResponse> Open(const std::string& data_set) override {
    if (!reachable.ok()) return reachable;
    for (const auto& [id, set] : sets) {
      if (id != data_set && set.name() != data_set) continue;
      v1::OpenDataSetResponse response;
      *response.mutable_data_set() = set;
      response.set_folder("data/sets/" + id);
      response.set_grant("read");
      return response;
    }
    return absl::NotFoundError("data set " + data_set);
  }
  absl::StatusOr<v1::RemoveDataSetResponse> Remove(const std::string& data_set) override {
    const auto opened = Open(data_set);
    if (!opened.ok()) return opened.status();
    const std::string id = opened->data_set().id();
    if (in_use.contains(id)) return absl::FailedPreconditionError("a job reads data set " + id);
    sets.erase(id);
    v1::RemoveDataSetResponse response;
    *response.mutable_data_set() = opened->data_set();
    return response;
  }

  absl::StatusOr<StoreClient::Size> Find(const StoredObject& object) override {
    if (!reachable.ok()) return reachable;
    const auto found = parts.find(KeyOf(object));
    if (found == parts.end()) return absl::NotFoundError(object.name);
    return StoreClient::Size{static_cast<int64_t>(found->second.bytes.size()),
                             found->second.complete, found->second.uploaded};
  }
  absl::Status Read(const StoredObject& object, int64_t offset,
                    std::span<std::byte> target) override {
    if (object.grant != "read") return absl::PermissionDeniedError(object.name);
    const std::string& bytes = parts[KeyOf(object)].bytes;
    if (offset + std::ssize(target) > std::ssize(bytes)) return absl::DataLossError(object.name);
    std::memcpy(target.data(), bytes.data() + offset, target.size());
    return absl::OkStatus();
  }
  absl::Status Append(const StoredObject& object, int64_t offset, std::span<const std::byte> bytes,
                      bool finish) override {
    if (on_append) on_append();
    if (!reachable.ok()) return reachable;
    if (object.grant != write_grant) return absl::PermissionDeniedError(object.name);
    if (appends_left == 0) return absl::UnavailableError("cut");
    --appends_left;
    ++appends;
    Object& there = parts[KeyOf(object)];
    if (direct) return AppendDirect(there, offset, bytes, finish);
    if (std::ssize(there.bytes) != offset) return absl::DataLossError("somebody else wrote");
    there.bytes.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    if (!finish) return absl::OkStatus();
    there.complete = Sha256Hex(there.bytes) == KeyOf(object);
    if (there.complete) return absl::OkStatus();
    parts.erase(KeyOf(object));
    return absl::InvalidArgumentError("the file was changed while it was uploaded");
  }
  absl::StatusOr<bool> IsDirect(const StoredObject&) override { return direct; }
  std::function<void()> Stopper() override {
    return [] {};
  }

 private:
  static absl::Status AppendDirect(Object& there, int64_t offset, std::span<const std::byte> bytes,
                                   bool finish) {
    while (std::ssize(there.bytes) > offset && !there.uploaded.empty()) {
      there.bytes.resize(there.bytes.size() - static_cast<size_t>(there.uploaded.back().bytes()));
      there.uploaded.pop_back();
    }
    if (std::ssize(there.bytes) != offset) return absl::DataLossError("no upload stands there");
    there.bytes.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    if (!bytes.empty()) {
      v1::UploadedPart& part = there.uploaded.emplace_back();
      part.set_bytes(std::ssize(bytes));
      part.set_etag(absl::StrCat("\"", Md5Hex(bytes), "\""));
    }
    there.complete = finish;
    return absl::OkStatus();
  }
  // "data/sets/ID/manifest" is the part ID.
  static std::string KeyOf(const StoredObject& object) {
    const size_t slash = object.name.rfind('/');
    const std::string last = object.name.substr(slash + 1);
    if (last != kDataManifestObject) return last;
    const size_t before = object.name.rfind('/', slash - 1);
    return object.name.substr(before + 1, slash - before - 1);
  }
};

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_CLI_TESTING_FAKE_DATA_CLIENT_H_
