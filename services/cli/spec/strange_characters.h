// StrangeCharacters: finds characters that look like a blank but are none to YAML: a tab, or a
// no-break space of a copied page.
// Threads: pure functions.
// Units:   lines and columns count from 1, columns in characters.
#ifndef STAGECOACH_SERVICES_CLI_SPEC_STRANGE_CHARACTERS_H_
#define STAGECOACH_SERVICES_CLI_SPEC_STRANGE_CHARACTERS_H_

#include <string>

#include "absl/status/status.h"

namespace stagecoach {

// INVALID_ARGUMENT "job.yaml:7:3: a tab, U+0009, stands here; ...", for the first in the lines from
// `first` to `last`, outside of comments and quotes. Tabs count only in the indent.
absl::Status FindStrange(const std::string& text, const std::string& file, int first, int last);

// " (it has a no-break space, U+00A0)" of a name or a value; empty if it has none.
std::string StrangeText(const std::string& text);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_CLI_SPEC_STRANGE_CHARACTERS_H_
