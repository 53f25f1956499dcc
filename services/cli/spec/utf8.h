// UTF-8: the check that text from outside passes before it may become a protobuf string.
#ifndef STAGECOACH_SERVICES_CLI_SPEC_UTF8_H_
#define STAGECOACH_SERVICES_CLI_SPEC_UTF8_H_

#include <string>

namespace stagecoach {

// Well-formed UTF-8 (no overlong forms, surrogates or values over U+10FFFF) without NUL.
bool IsUtf8Text(const std::string& text);

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_CLI_SPEC_UTF8_H_
