// The inputs that fuzzing begins with, made by the writers whose readers are tried.
#ifndef STAGECOACH_TESTS_FUZZ_WRITE_CORPUS_H_
#define STAGECOACH_TESTS_FUZZ_WRITE_CORPUS_H_

#include <string>

namespace stagecoach {

// Into FOLDER/TARGET/NAME; replaces files of the same name and leaves others.
void WriteCorpus(const std::string& folder);

}  // namespace stagecoach

#endif  // STAGECOACH_TESTS_FUZZ_WRITE_CORPUS_H_
