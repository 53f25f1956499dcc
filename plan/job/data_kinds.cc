#include "plan/job/data_kinds.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/errors/field_check.h"

namespace stagecoach {
namespace {

const DataInput* FindInput(const std::vector<DataInput>& given, const std::string& name) {
  const auto found = std::find_if(given.begin(), given.end(),
                                  [&name](const DataInput& input) { return input.name == name; });
  return found == given.end() ? nullptr : &*found;
}

// "tokens and targets"
std::string NamesOf(const std::vector<DataInput>& given) {
  std::string names;
  for (size_t i = 0; i < given.size(); ++i) {
    absl::StrAppend(&names, i == 0 ? "" : i + 1 < given.size() ? ", " : " and ", given[i].name);
  }
  return names;
}

// Which sources give everything that the network reads.
std::string WhoGives(const Network& network) {
  std::vector<std::string> fitting;
  for (const DataKind* kind : DataKinds().all()) {
    const std::vector<DataInput> given = kind->Inputs();
    const bool all = std::all_of(
        network.inputs.begin(), network.inputs.end(),
        [&given](const NetworkInput& input) { return FindInput(given, input.name) != nullptr; });
    if (all) fitting.push_back(absl::StrCat("data.", std::string(kind->name())));
  }
  return absl::StrJoin(fitting, " or ");
}

absl::Status NotGiven(const DataKind& kind, const Network& network, const std::string& input) {
  const std::string fitting = WhoGives(network);
  return FieldError(
      absl::StrCat("data.", std::string(kind.name())),
      absl::StrCat("gives ", NamesOf(kind.Inputs())),
      absl::StrCat("the network reads \"", input, "\": ",
                   fitting.empty() ? "no data source gives all its inputs; take another network"
                                   : absl::StrCat("give it ", fitting)));
}

std::string TypeText(const DataInput& given) {
  return absl::StrCat(given.ids ? "ids" : "numbers", "[", absl::StrJoin(given.extents, ", "), "]");
}

absl::Status CheckInput(const DataKind& kind, const DataInput& given, const ValueType& type) {
  const bool ids = type.element == Element::kIds;
  const bool fits = ids == given.ids && type.leading == Leading::kSamples &&
                    type.shape.rank() == static_cast<int>(given.extents.size());
  if (fits) return absl::OkStatus();
  return FieldError(absl::StrCat("data.", std::string(kind.name())),
                    absl::StrCat("gives ", given.name, " as ", TypeText(given)),
                    absl::StrCat("the network reads ", FormatType(type),
                                 ": take a network that reads the former"));
}

}  // namespace

const KindList<DataKind>& DataKinds() {
  static const auto* const list =
      new KindList<DataKind>("data", "data source", CallEach(kListedDataKind));
  return *list;
}

std::vector<DataFile> DataFiles(const DataSpec& data) {
  const DataKind& kind = DataKinds().Named(data.kind);
  std::vector<DataFile> files;
  const auto add = [&](const std::string& field, const std::string& path, bool folder) {
    if (path.empty()) return;
    files.push_back({.field = field, .path = path, .folder = folder});
    const std::string beside = folder ? "" : kind.FileBeside(path);
    if (!beside.empty()) files.push_back({.field = field, .path = beside, .beside = true});
  };
  const auto add_all = [&](const std::vector<std::string>& fields, bool folder) {
    for (const std::string& field : fields) {
      const AttributeValue* const value = data.attributes.Find(field);
      CHECK(value != nullptr) << field;
      const auto* const paths = std::get_if<std::vector<std::string>>(value);
      if (paths == nullptr) add(field, std::get<std::string>(*value), folder);
      for (size_t i = 0; paths != nullptr && i < paths->size(); ++i) {
        add(absl::StrCat(field, "[", i, "]"), (*paths)[i], folder);
      }
    }
  };
  add_all(kind.FileFields(), false);
  add_all(kind.FolderFields(), true);
  return files;
}

void ChangeDataPaths(const std::function<std::string(const std::string& path)>& change,
                     DataSpec* data) {
  const auto change_one = [&change](std::string& path) {
    if (!path.empty()) path = change(path);
  };
  const DataKind& kind = DataKinds().Named(data->kind);
  for (const std::vector<std::string>& fields : {kind.FileFields(), kind.FolderFields()}) {
    for (const std::string& field : fields) {
      const AttributeValue* const value = data->attributes.Find(field);
      CHECK(value != nullptr) << field;
      AttributeValue changed = *value;
      if (auto* const paths = std::get_if<std::vector<std::string>>(&changed)) {
        for (std::string& path : *paths) change_one(path);
      } else {
        change_one(std::get<std::string>(changed));
      }
      data->attributes.Set(field, std::move(changed));
    }
  }
}

std::string DataFieldPath(const DataSpec& data, const DataFile& file) {
  return absl::StrCat("data.", data.kind, ".", file.field);
}

std::string DataFilesText(const DataSpec& data) {
  std::string text;
  for (const DataFile& file : DataFiles(data)) {
    absl::StrAppend(&text, text.empty() ? "" : ", ", DataFieldPath(data, file), " = \"", file.path,
                    "\"");
  }
  return text;
}

std::string SampleWeightsPath(const DataSpec& data) {
  const absl::StatusOr<const DataKind*> kind = DataKinds().Find(data.kind);
  if (!kind.ok()) return "";
  const std::string field = (*kind)->WeightsField();
  const AttributeValue* const value = data.attributes.Find(field);
  const auto* const path = value == nullptr ? nullptr : std::get_if<std::string>(value);
  if (path == nullptr || path->empty()) return "";
  return DataFieldPath(data, {.field = field, .path = *path});
}

absl::Status ValidateData(const DataSpec& data, const Network& network) {
  RETURN_IF_ERROR(DataKinds().Check(data));
  const DataKind& kind = DataKinds().Named(data.kind);
  const std::vector<DataInput> given = kind.Inputs();
  for (size_t i = 0; i < network.inputs.size(); ++i) {
    const std::string& name = network.inputs[i].name;
    const DataInput* const input = FindInput(given, name);
    if (input == nullptr) return NotGiven(kind, network, name);
    RETURN_IF_ERROR(CheckInput(kind, *input, network.wires[i].type));
  }
  return kind.CheckInputs(data, network);
}

}  // namespace stagecoach
