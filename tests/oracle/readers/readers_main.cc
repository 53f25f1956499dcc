// stagecoach-readers: reads lines of "READER<tab>PATH" and answers each with a line of JSON: what
// the reader yields of that file or folder, or `error`, its refusal. Names and contents are in
// hexadecimal, as they may be any bytes.
#include <cstdint>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "base/errors/status.h"
#include "checkpoint/files/file_system.h"
#include "checkpoint/safetensors/safetensors.h"
#include "plan/job/data_kinds.h"
#include "stage/data/formats/class_folders.h"
#include "stage/data/formats/data_file.h"
#include "stage/data/formats/idx_file.h"
#include "stage/data/formats/shard_list.h"
#include "stage/data/formats/tar_members.h"
#include "stage/files/any_file_testing.h"

namespace stagecoach {
namespace {

using Json = nlohmann::json;

constexpr char kField[] = "data";

template <typename Bytes>
std::string HexOf(const Bytes& bytes) {
  const auto all = std::as_bytes(std::span(bytes));
  return absl::BytesToHexString({reinterpret_cast<const char*>(all.data()), all.size()});
}

// What a client can tell by the first bytes, and then what a stage reads.
absl::Status ReadGzip(const std::string& path, Json* answer) {
  ASSIGN_OR_RETURN(const std::unique_ptr<OpenedFile> head,
                   OpenedFile::Open(AnyFile(), kField, path));
  std::string bytes(std::min(static_cast<size_t>(head->size()), kDataHeadBytes), '\0');
  RETURN_IF_ERROR(
      head->ReadAt(0, std::span(reinterpret_cast<uint8_t*>(bytes.data()), bytes.size())));
  ASSIGN_OR_RETURN(const std::string unpacked, UnpackedIdxHead(head->Where(), bytes));
  RETURN_IF_ERROR(ParseIdxHeader(head->Where(), IdxContent::kImages, unpacked).status());
  Sha256 digest;
  ASSIGN_OR_RETURN(const IdxFile file, ReadIdxFile(AnyFile(), kField, path, IdxContent::kImages,
                                                   /*keep=*/true, &digest));
  (*answer)["bytes"] = HexOf(file.bytes);
  return absl::OkStatus();
}

absl::Status ReadTar(const std::string& path, Json* answer) {
  ASSIGN_OR_RETURN(const std::unique_ptr<OpenedFile> file,
                   OpenedFile::Open(AnyFile(), kField, path));
  Json& members = (*answer)["members"] = Json::array();
  TarMembers tar(file.get());
  while (true) {
    ASSIGN_OR_RETURN(const std::optional<TarMember> member, tar.Next());
    if (!member.has_value()) return absl::OkStatus();
    if (member->link) continue;
    std::vector<uint8_t> content(static_cast<size_t>(member->bytes));
    RETURN_IF_ERROR(file->ReadAt(member->offset, content));
    members.push_back({HexOf(member->name), HexOf(content)});
  }
}

absl::Status ReadShards(const std::string& path, Json* answer) {
  Json& bad = (*answer)["bad"] = Json::array();
  const auto add = [&bad](const absl::Status& reason) {
    bad.push_back(reason.message());
    return absl::OkStatus();
  };
  ASSIGN_OR_RETURN(const ShardList list,
                   ShardList::List(AnyFile(), kField, path, /*classes=*/1000, add));
  Json& samples = (*answer)["samples"] = Json::array();
  for (int64_t i = 0; i < list.count(); ++i) {
    ASSIGN_OR_RETURN(const std::vector<uint8_t> picture, list.Read(i));
    samples.push_back({HexOf(picture), list.label(i)});
  }
  (*answer)["left_out"] = list.left_out().Text();
  return absl::OkStatus();
}

absl::Status ReadFolders(const std::string& path, Json* answer) {
  ASSIGN_OR_RETURN(const ClassFolders folders, ClassFolders::List(AnyFile(), kField, path));
  for (const std::string& name : folders.classes()) (*answer)["classes"].push_back(HexOf(name));
  Json& samples = (*answer)["samples"] = Json::array();
  for (int64_t i = 0; i < folders.count(); ++i) {
    ASSIGN_OR_RETURN(const std::vector<uint8_t> picture, folders.Read(i));
    samples.push_back({HexOf(folders.path(i)), folders.label(i), HexOf(picture)});
  }
  (*answer)["left_out"] = folders.left_out().Text();
  return absl::OkStatus();
}

absl::Status ReadSafetensors(const std::string& path, Json* answer) {
  ASSIGN_OR_RETURN(SafetensorsReader reader, SafetensorsReader::Open(*PosixFileSystem(), path));
  (*answer)["metadata"] = Json::object();
  for (const auto& [key, value] : reader.metadata())
    (*answer)["metadata"][HexOf(key)] = HexOf(value);
  Json& tensors = (*answer)["tensors"] = Json::object();
  for (const TensorEntry& entry : reader.tensors()) {
    std::vector<std::byte> bytes(static_cast<size_t>(entry.bytes()));
    RETURN_IF_ERROR(reader.Read(entry, bytes));
    tensors[HexOf(entry.name)] = {DTypeName(entry.dtype), entry.shape.extents(), HexOf(bytes)};
  }
  return absl::OkStatus();
}

using Reader = absl::Status (*)(const std::string& path, Json* answer);

int Main() {
  const std::map<std::string, Reader> readers = {{"gzip", &ReadGzip},
                                                 {"tar", &ReadTar},
                                                 {"shards", &ReadShards},
                                                 {"folders", &ReadFolders},
                                                 {"safetensors", &ReadSafetensors}};
  for (std::string line; std::getline(std::cin, line);) {
    const size_t tab = line.find('\t');
    const auto reader = readers.find(line.substr(0, tab));
    if (tab == std::string::npos || reader == readers.end()) {
      std::cerr << "stagecoach-readers: " << line << ": want READER<tab>PATH\n";
      return 2;
    }
    Json answer = Json::object();
    const absl::Status status = reader->second(line.substr(tab + 1), &answer);
    if (!status.ok()) answer["error"] = status.message();
    std::cout << answer.dump() << std::endl;
  }
  return 0;
}

}  // namespace
}  // namespace stagecoach

int main() { return stagecoach::Main(); }
