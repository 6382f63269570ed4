#pragma once
// The writer's side of `straightway run`: this process's receipts, summed up by file in memory that
// the command line shares with every process of a program (tally_layout.hpp).

#include <memory>
#include <string>

#include "straightway/receipt.hpp"

namespace straightway::receipt {

struct TallyLayout;
struct TallyFile;

class Tally {
 public:
  // place: the file that the command line names in STRAIGHTWAY_RUN. Null where it is no tally, or
  // cannot be reached any more.
  static std::unique_ptr<Tally> open(const std::string& place);
  ~Tally();
  Tally(const Tally&) = delete;
  Tally& operator=(const Tally&) = delete;

  // From any thread, without a lock; in a forked child too, whose transfers belong to the program.
  void add(const Receipt& receipt) noexcept;
  void add_error(Direction direction) noexcept;

 private:
  explicit Tally(TallyLayout* layout) : layout_(layout) {}
  TallyFile& file_of(const Receipt& receipt) noexcept;
  TallyLayout* layout_;
};

}  // namespace straightway::receipt
