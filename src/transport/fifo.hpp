#pragma once
// A queue in one piece of memory. Only reserve() allocates, so that a thread of ours, where nobody
// catches, can first see to the room and then change state.

#include <bit>
#include <cstddef>
#include <utility>
#include <vector>

namespace straightway::transport {

template <class T>
class Fifo {
 public:
  // Room for count elements. Throws std::bad_alloc with nothing changed.
  void reserve(std::size_t count) {
    if (count <= slots_.size()) return;
    std::vector<T> more(std::bit_ceil(count));
    for (std::size_t i = 0; i < size_; ++i) more[i] = std::move((*this)[i]);
    slots_ = std::move(more);
    first_ = 0;
  }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  // 0 is the oldest; i < size().
  T& operator[](std::size_t i) { return slots_[(first_ + i) & (slots_.size() - 1)]; }
  const T& operator[](std::size_t i) const { return slots_[(first_ + i) & (slots_.size() - 1)]; }
  T& front() { return (*this)[0]; }
  const T& front() const { return (*this)[0]; }
  // Where there is room for it.
  void push_back(T value) { (*this)[size_++] = std::move(value); }
  void pop_front() {
    first_ = (first_ + 1) & (slots_.size() - 1);
    --size_;
  }
  void clear() { size_ = 0; }

 private:
  std::vector<T> slots_;
  std::size_t first_ = 0;
  std::size_t size_ = 0;
};

}  // namespace straightway::transport
