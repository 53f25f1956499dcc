// Characters as the library `tokenizers` knows them, whose parts have different versions of Unicode:
// patterns 16.0, Digits 17.0, words beside an added token 16.0. ICU has the version of the system,
// on Debian 12 version 15.0. What came later stands in a table here.
// Threads: pure functions.
#ifndef STAGECOACH_STAGE_TOKENS_TOKENIZER_JSON_UNICODE_VERSIONS_H_
#define STAGECOACH_STAGE_TOKENS_TOKENIZER_JSON_UNICODE_VERSIONS_H_

#include <string>
#include <string_view>

namespace stagecoach {

// Classes for a pattern of ICU, in brackets. category: "l", "lu". script: "han".
std::string CategoryClass(const std::string& category);
std::string ScriptClass(const std::string& script);
// "\w" of Oniguruma, which alone has more characters than in a class.
std::string WordClass(bool in_class);

bool IsUnicodeNumber(char32_t character);  // as Digits says
bool IsUnicodeWord(char32_t character);    // beside an added token
bool IsUnicodeSpace(char32_t character);

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_TOKENS_TOKENIZER_JSON_UNICODE_VERSIONS_H_
