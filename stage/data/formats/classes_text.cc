#include "stage/data/formats/classes_text.h"

#include "absl/strings/str_cat.h"

namespace stagecoach {

std::string ClassesText(const JobSpec& spec, int64_t classes) {
  const bool field = spec.network.attributes.Find("classes") != nullptr;
  return absl::StrCat(field ? absl::StrCat("model.", spec.network.kind, ".classes = ")
                            : absl::StrCat("the classes of model.", spec.network.kind, ", "),
                      classes);
}

}  // namespace stagecoach
