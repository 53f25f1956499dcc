#include "stage/data/formats/classes_text.h"

#include "absl/strings/str_cat.h"

namespace stagecoach {

std::string ClassesText(const JobSpec& spec, int64_t classes) {
  const bool field = spec.model.attributes.Find("classes") != nullptr;
  return absl::StrCat(field ? absl::StrCat("model.", spec.model.kind, ".classes = ")
                            : absl::StrCat("the classes of model.", spec.model.kind, ", "),
                      classes);
}

}  // namespace stagecoach
