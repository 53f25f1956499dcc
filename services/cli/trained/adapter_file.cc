#include "services/cli/trained/adapter_file.h"

#include <map>
#include <span>

#include "absl/strings/str_cat.h"
#include "base/errors/status.h"
#include "checkpoint/content_digest.h"

namespace stagecoach {
namespace {

constexpr char kOther[] = "; give the configuration that these adapters were trained with";

std::map<std::string, Shape> AdapterShapes(const Network& network) {
  std::map<std::string, Shape> shapes;
  for (const NetworkLayer& layer : network.layers) {
    for (const ParameterSpec& parameter : layer.parameters) {
      if (parameter.part == ParameterSpec::Part::kAdapter) shapes[parameter.name] = parameter.shape;
    }
  }
  return shapes;
}

absl::Status CheckTensors(const SafetensorsReader& reader,
                          const std::map<std::string, Shape>& shapes) {
  for (const auto& [name, shape] : shapes) {
    const TensorEntry* const entry = reader.Find(name);
    if (entry == nullptr) return absl::DataLossError(absl::StrCat("no tensor ", name, kOther));
    if (entry->dtype == DType::kF32 && entry->shape == shape) continue;
    return absl::DataLossError(absl::StrCat("tensor ", name, " is ", DTypeName(entry->dtype), " ",
                                            entry->shape.ToString(), ", the job's is F32 ",
                                            shape.ToString(), kOther));
  }
  if (reader.tensors().size() == shapes.size()) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(reader.tensors().size(),
                                          " tensors; the adapters of the job beside it have ",
                                          shapes.size(), kOther));
}

}  // namespace

absl::StatusOr<AdapterFile> AdapterFile::Open(FileSystem& files, const std::string& path,
                                              const Network& network) {
  ASSIGN_OR_RETURN(SafetensorsReader reader, SafetensorsReader::Open(files, path));
  RETURN_IF_ERROR(Annotate(CheckTensors(reader, AdapterShapes(network)), path));
  RETURN_IF_ERROR(Annotate(CheckContent(reader), path));
  return AdapterFile(path, std::move(reader), AdaptersOf(network));
}

std::string AdapterFile::base_sha256() const {
  const auto found = reader_.metadata().find(kBaseDigestKey);
  return found == reader_.metadata().end() ? "" : found->second;
}

absl::StatusOr<std::vector<float>> AdapterFile::Read(const std::string& name) {
  const TensorEntry& entry = *reader_.Find(name);
  std::vector<float> values(static_cast<size_t>(entry.shape.elements()));
  RETURN_IF_ERROR(Annotate(reader_.Read(entry, std::as_writable_bytes(std::span(values))), path_));
  return values;
}

}  // namespace stagecoach
