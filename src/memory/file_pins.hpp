#pragma once
// The pins of one open file: which of its pages are registered, for whom, and whether they may
// still be believed.
//
// Pages that a device holds keep their old bytes when the file is truncated, gets a hole or is
// written with O_DIRECT. So before and after each copy two witnesses are asked: the file's stamp,
// and the page tables. Where either has changed, every pin of the file is given up at once.

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "memory/pinned_range.hpp"

namespace straightway::memory {

// How much of the page cache all pins of a Context may hold.
class PinBudget {
 public:
  explicit PinBudget(std::uint64_t limit_bytes) : limit_bytes_(limit_bytes) {}
  bool take(std::uint64_t size_bytes);
  void give_back(std::uint64_t size_bytes) { used_bytes_ -= size_bytes; }
  std::uint64_t limit_bytes() const { return limit_bytes_; }
  std::uint64_t used_bytes() const { return used_bytes_; }

 private:
  const std::uint64_t limit_bytes_;
  std::atomic<std::uint64_t> used_bytes_{0};
};

// Any thread may call anything at any time. Not to be used in a forked child, only destroyed.
class FilePins : public std::enable_shared_from_this<FilePins> {
  struct Entry;

 public:
  // on_lost: told once for each time that pins are given up, from any thread; must not call back.
  using OnLost = std::function<void(const std::string& why)>;
  // How a long stretch is pinned: in pieces, whose pages are entered into the page table by helping
  // threads ahead of their registration.
  struct Pieces {
    std::uint64_t size_bytes = std::uint64_t{128} << 20;
    std::uint32_t helpers = 0;
  };
  // fd stays open until close().
  static Result<std::shared_ptr<FilePins>> make(std::shared_ptr<Space> space,
                                                std::shared_ptr<PinBudget> budget, int fd,
                                                OnLost on_lost, Pieces pieces);
  FilePins(const FilePins&) = delete;
  FilePins& operator=(const FilePins&) = delete;

  struct Added {
    std::uint64_t pin = 0;
    std::uint64_t size_bytes = 0;  // of the file, that it holds
  };
  // Pins the ranges as far as the file goes; what another pin of this file holds already is shared.
  // May wait for copies, so not for the thread that drives them. Where it fails or throws
  // std::bad_alloc, nothing of it stays held.
  Result<Added> add(const std::vector<FileRange>& ranges, std::int32_t device);
  // Ends a pin; pages that no other holds are let go. Waits for the copies that use them, or, where
  // it may not, leaves that to a later call.
  void remove(std::uint64_t pin, bool may_wait);
  bool has(std::uint64_t pin);
  // Ends all; add() fails from now on.
  void close(bool may_wait);

  // What of the file is pinned (to its end, not that of its last page), in order, adjoining
  // stretches joined.
  std::vector<FileRange> extents();
  // Whether pins were given up since the last add().
  bool lost();

  // A copy's hold on a pinned range.
  class Use {
   public:
    Use() = default;
    Use(std::shared_ptr<FilePins> pins, Entry* entry) : pins_(std::move(pins)), entry_(entry) {}
    ~Use();
    Use(Use&& other) noexcept : pins_(std::move(other.pins_)), entry_(other.entry_) {}
    Use& operator=(Use&& other) noexcept;

    explicit operator bool() const { return pins_ != nullptr; }
    const PinnedRange& range() const;
    // The two checks of a part of the range. False: every pin of the file is given up.
    bool intact(const FileRange& part) const;
    // The same, and that the driver still holds the pages: before a copy.
    bool ready(const FileRange& part) const;

   private:
    std::shared_ptr<FilePins> pins_;  // null: holds nothing
    Entry* entry_ = nullptr;
  };
  // Of the range that holds this offset; empty where none does.
  Use use(std::uint64_t offset);

 private:
  struct Entry {
    explicit Entry(std::shared_ptr<PinBudget> of) : budget(std::move(of)) {}
    ~Entry() {
      range.reset();
      budget->give_back(taken_bytes);
    }
    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;

    const std::shared_ptr<PinBudget> budget;
    std::uint64_t taken_bytes = 0;  // of it
    std::unique_ptr<PinnedRange> range;
    std::vector<std::uint64_t> pins;  // whose it is
    std::uint32_t users = 0;
    bool leaving = false;
  };
  using Entries = std::vector<std::unique_ptr<Entry>>;
  class Filling;

  FilePins(std::shared_ptr<Space> space, std::shared_ptr<PinBudget> budget, int fd,
           os::PagePresence presence, OnLost on_lost, Pieces pieces);
  Result<void> fill(std::uint64_t pin, const std::vector<FileRange>& wanted, std::int32_t device,
                    const os::FileStamp& stamp);
  void lose_outdated(const os::FileStamp& stamp);
  Result<void> add_range(std::uint64_t pin, const FileRange& gap, std::int32_t device,
                         const os::FileStamp& stamp);
  Result<Entries> cut(std::uint64_t pin, const FileRange& gap, const os::FileStamp& stamp);
  void insert(std::unique_ptr<Entry> entry);
  std::vector<FileRange> share(std::uint64_t pin, const FileRange& wanted);
  bool intact(const PinnedRange& range, const FileRange& part);
  void lose(const char* why);
  void let_go(bool may_wait);
  std::unique_ptr<Entry> take_unused();
  void end_use(Entry& entry);

  const std::shared_ptr<Space> space_;
  const std::shared_ptr<PinBudget> budget_;
  const int fd_;
  const os::PagePresence presence_;
  const OnLost on_lost_;
  const Pieces pieces_;

  std::mutex adding_;  // one registration at a time; taken before mutex_
  std::mutex mutex_;
  std::condition_variable unused_;
  Entries entries_;  // by offset
  std::uint64_t last_pin_ = 0;
  bool lost_ = false;
  bool closed_ = false;
};

}  // namespace straightway::memory
