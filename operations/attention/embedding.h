// embedding: y[row] = token[ids[row]] + position[row mod context]. With tokens_only there is no
// position.
// embedding_weight_gradient: adds dy's rows to both tables, or to the only one. The order follows
// from rows and ids alone.
#ifndef STAGECOACH_OPERATIONS_ATTENTION_EMBEDDING_H_
#define STAGECOACH_OPERATIONS_ATTENTION_EMBEDDING_H_

namespace stagecoach {

// For both operations. Inputs: ids, token, and position unless tokens_only.
struct EmbeddingAttributes {
  bool tokens_only = false;  // positions come from elsewhere, as by rotary
  template <typename Visitor>
  void Visit(Visitor& visit) {
    visit.Flag("tokens_only", tokens_only);
  }
};

}  // namespace stagecoach

#endif  // STAGECOACH_OPERATIONS_ATTENTION_EMBEDDING_H_
