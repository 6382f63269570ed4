// What a program that uses an installed Straightway looks like.
#include <filesystem>
#include <iostream>

#include "straightway/straightway.hpp"

int main(int, char** argv) {
  std::cout << std::filesystem::file_size(argv[1]) << " bytes by "
            << straightway::to_string(straightway::Route::buffered) << '\n';
}
