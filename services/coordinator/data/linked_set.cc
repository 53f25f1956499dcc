#include "services/coordinator/data/linked_set.h"

#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/errors/caller_error.h"
#include "base/errors/status.h"
#include "base/files/hash.h"
#include "base/utf8.h"

namespace stagecoach {
namespace {

constexpr char kTokenizerConfig[] = "tokenizer_config.json";

bool IsOfWeights(const std::string& key) {
  return key.ends_with(".safetensors") || key.ends_with(".json");
}

BucketPath FolderOfObject(const BucketPath& path) {
  const size_t slash = path.key.rfind('/');
  return {path.bucket, slash == std::string::npos ? "" : path.key.substr(0, slash)};
}

BucketPath Beside(const BucketPath& path, const std::string& name) {
  const std::string folder = FolderOfObject(path).key;
  return {path.bucket, absl::StrCat(folder, folder.empty() ? "" : "/", name)};
}

// The objects of one job; each is there once.
class Links {
 public:
  explicit Links(DataBuckets* buckets) : buckets_(*buckets) {}

  absl::Status Add(const ClusterPath& named) {
    ASSIGN_OR_RETURN(const BucketPath path, ParseBucketPath(named.path));
    weights_ = named.field == "initialize.from";
    RETURN_IF_ERROR(buckets_.CheckAllowed(path));
    absl::StatusOr<DataBuckets::Object> object = absl::NotFoundError("");
    if (named.file && !path.key.empty()) object = buckets_.Look(path);
    if (object.ok()) {
      if (object->bytes == 0) return Empty();
      RETURN_IF_ERROR(Take(*std::move(object)));
      return AddBeside(named, path);
    }
    if (!absl::IsNotFound(object.status())) return object.status();
    return named.folder ? AddFolder(path) : NoFile(path);
  }

  v1::DataManifest TakeManifest() {
    v1::DataManifest manifest;
    for (auto& [path, object] : objects_) {
      v1::DataSetFile& file = *manifest.add_files();
      file.set_path(path);
      file.set_bytes(object.bytes);
      if (object.bytes == 0) continue;
      file.set_part(manifest.parts_size());
      v1::DataPart& part = *manifest.add_parts();
      part.set_source(object.path.Text());
      part.set_etag(std::move(object.etag));
      part.set_bytes(object.bytes);
      part.set_sha256(Sha256Hex(absl::StrCat(part.source(), "\n", part.etag(), "\n")));
    }
    return manifest;
  }

 private:
  absl::Status Take(DataBuckets::Object object) {
    if (object.etag.empty() && object.bytes > 0) {
      return absl::FailedPreconditionError(
          absl::StrCat(object.path.Text(),
                       ": its server gives no ETag, so nobody would see that it changed; put "
                       "the object on another server, or upload the file by `submit`"));
    }
    objects_[object.path.PathInSet()] = std::move(object);
    if (objects_.size() <= kMostLinkedObjects) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("the job names more than ", kMostLinkedObjects,
                     " objects: pack small files into tar files (data.webdataset)"));
  }

  // If they are there and may be read: the tokenizer's configuration, the shards of an index.
  absl::Status AddBeside(const ClusterPath& named, const BucketPath& path) {
    const BucketPath config = Beside(path, kTokenizerConfig);
    if (named.field.ends_with(".tokenizer") && buckets_.CheckAllowed(config).ok()) {
      absl::StatusOr<DataBuckets::Object> object = buckets_.Look(config);
      if (absl::IsNotFound(object.status())) return absl::OkStatus();
      RETURN_IF_ERROR(object.status());
      return Take(*std::move(object));
    }
    const BucketPath folder = FolderOfObject(path);
    if (!weights_ || !path.key.ends_with(".json") || !buckets_.CheckAllowed(folder).ok()) {
      return absl::OkStatus();
    }
    ASSIGN_OR_RETURN(std::vector<DataBuckets::Object> objects,
                     buckets_.List(folder, /*flat=*/true, kMostLinkedObjects));
    for (DataBuckets::Object& object : objects) {
      if (!object.path.key.ends_with(".safetensors")) continue;
      RETURN_IF_ERROR(Take(std::move(object)));
    }
    return absl::OkStatus();
  }

  absl::Status AddFolder(const BucketPath& path) {
    ASSIGN_OR_RETURN(std::vector<DataBuckets::Object> objects,
                     buckets_.List(path, /*flat=*/false, kMostLinkedObjects));
    bool any = false, any_bytes = false;
    for (DataBuckets::Object& object : objects) {
      if (weights_ && !IsOfWeights(object.path.key)) continue;
      any = true;
      any_bytes = any_bytes || object.bytes > 0;
      RETURN_IF_ERROR(Take(std::move(object)));
    }
    if (any) return any_bytes ? absl::OkStatus() : AllEmpty();
    const bool file = !path.key.empty() && buckets_.Look(path).ok();
    return absl::InvalidArgumentError(
        file ? "the bucket has an object of this name; name its folder"
             : "the bucket has no object below this folder; look with `aws s3 ls`");
  }

  static absl::Status Empty() {
    return absl::InvalidArgumentError(
        "the bucket's object has 0 bytes; put its content there again, or name another object");
  }
  static absl::Status AllEmpty() {
    return absl::InvalidArgumentError(
        "all objects of the bucket below this folder have 0 bytes; put their content there again, "
        "or name another folder");
  }

  absl::Status NoFile(const BucketPath& path) {
    ASSIGN_OR_RETURN(const bool folder, buckets_.IsFolder(path));
    return absl::InvalidArgumentError(folder
                                          ? "the bucket has a folder there; name the file"
                                          : "the bucket has no such object; look with `aws s3 ls`");
  }

  DataBuckets& buckets_;
  bool weights_ = false;                                // the path at hand is of `initialize`
  std::map<std::string, DataBuckets::Object> objects_;  // by path in the set
};

}  // namespace

absl::StatusOr<v1::DataManifest> LinkObjects(DataBuckets* buckets,
                                             const std::vector<ClusterPath>& paths) {
  Links links(buckets);
  for (const ClusterPath& path : paths) {
    const absl::Status added =
        Annotate(links.Add(path),
                 absl::StrCat(path.field, " = \"", ShownName(path.path.substr(0, 300)), "\""));
    // Of the operator's prefixes, or the server's word about the coordinator's credentials.
    if (absl::IsPermissionDenied(added)) return ForCaller(added);
    RETURN_IF_ERROR(added);
  }
  return links.TakeManifest();
}

}  // namespace stagecoach
