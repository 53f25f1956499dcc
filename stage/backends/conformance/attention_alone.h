// Attention of samples with padding, of documents in one context, and of two sequences: the same
// numbers as each sample or document alone, without `keys`.
// Errors: the answer is empty, or says where they differ.
#ifndef STAGECOACH_STAGE_BACKENDS_CONFORMANCE_ATTENTION_ALONE_H_
#define STAGECOACH_STAGE_BACKENDS_CONFORMANCE_ATTENTION_ALONE_H_

#include <string>

#include "stage/backends/conformance/harness.h"

namespace stagecoach::conformance {

// Bits, forward and backward. Padding is not read: it is NaN.
std::string PaddingChanges(Backend& backend, Elements elements);
std::string CrossPaddingChanges(Backend& backend, Elements elements);
// `tolerance` 0: bits. A back end may add up a document's columns in another order if the document
// begins elsewhere. A document that is the whole context must have its bits.
std::string OtherDocumentsChange(Backend& backend, Elements elements, double tolerance);

}  // namespace stagecoach::conformance

#endif  // STAGECOACH_STAGE_BACKENDS_CONFORMANCE_ATTENTION_ALONE_H_
