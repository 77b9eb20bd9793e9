// SPDX-License-Identifier: BSD-3-Clause
// Collectives that may return early, into types with gaps: gapped_blocks SEED
// Columns of a matrix, rows with holes, and pieces of different lengths. Ranks come late at random.
// When a call returns, the program frees its type, changes what it has sent, and writes into gaps.
// A line for each collective and rank says how many bytes were wrong, and how many calls have
// returned early. `gaps`: bytes between the data that were not as the program had left them.
#include "robust.h"

enum { kBehind = 64, kWords = 120000, kShapes = 3, kRounds = 2 };
enum { kAlltoall, kAlltoallw, kAllgather, kBcast, kGather, kScatter, kCollectives };
static const char* const names[kCollectives] = {"alltoall", "alltoallw", "allgather", "bcast", "gather", "scatter"};

static int* send;
static char *receive, *expected, *is_data;
static size_t memory_bytes;

static int word(int from, int to, int i) { return (int)((unsigned)(from * 131 + to * 17 + i) * 2654435761u >> 3); }

// One block of `words` ints. *step: from one block to the next.
static MPI_Datatype block_type(int shape, int words, size_t* step) {
  MPI_Datatype made, sized;
  if (shape == 0) {  // blocks are columns of a matrix
    *step = 2 * sizeof(int);
    MPI_Type_vector(words / 2, 2, 2 * world_size + 1, MPI_INT, &made);
    MPI_Type_create_resized(made, 0, (MPI_Aint)*step, &sized);
  } else if (shape == 1) {  // rows of a page and a half, with holes of as much
    const int row = 1500;
    *step = ((size_t)words / row + 1) * 2 * row * sizeof(int);
    MPI_Type_vector(words / row, row, 2 * row, MPI_INT, &made);
    MPI_Type_create_resized(made, 0, (MPI_Aint)*step, &sized);
  } else {  // pieces of 1, 2, 3 ... words, the later ones first
    int lengths[700], displs[700], pieces = 0;
    for (int left = words, at = 2 * words; left > 0 && pieces < 700; ++pieces) {
      lengths[pieces] = pieces == 699 || pieces + 1 > left ? left : pieces + 1;
      at -= lengths[pieces] + 1;
      displs[pieces] = at;
      left -= lengths[pieces];
    }
    *step = 2 * (size_t)words * sizeof(int);
    MPI_Type_indexed(pieces, lengths, displs, MPI_INT, &made);
    MPI_Type_create_resized(made, 0, (MPI_Aint)*step, &sized);
  }
  MPI_Type_commit(&sized);
  MPI_Type_free(&made);
  return sized;
}

static int gets(int what, int root) {
  return what == kBcast || what == kScatter ? world_rank != root : what != kGather || world_rank == root;
}

// What this rank is to have, and which bytes are data.
static void compute(int what, int root, int words, MPI_Datatype type, size_t step) {
  const int blocks = what == kBcast || what == kScatter ? 1 : world_size;
  int* const packed = malloc((size_t)words * sizeof(int));
  for (int r = 0; r < blocks && (gets(what, root) || what == kScatter); ++r) {
    const int from = what == kBcast || what == kScatter ? root : r;
    const int to = what == kBcast || what == kAllgather || what == kGather ? 0 : world_rank;
    for (int pass = 0; pass < 2; ++pass) {
      int at = 0;
      for (int i = 0; i < words; ++i) packed[i] = pass == 0 ? word(from, to, i) : -1;
      MPI_Unpack(packed, words * (int)sizeof(int), &at, (pass == 0 ? expected : is_data) + (size_t)r * step, 1, type,
                 MPI_COMM_SELF);
    }
  }
  free(packed);
}

static void call(int what, int root, int words, MPI_Datatype type, size_t step) {
  switch (what) {
    case kAlltoall: MPI_Alltoall(send, words, MPI_INT, receive, 1, type, MPI_COMM_WORLD); break;
    case kAllgather: MPI_Allgather(send, words, MPI_INT, receive, 1, type, MPI_COMM_WORLD); break;
    case kGather: MPI_Gather(send, words, MPI_INT, receive, 1, type, root, MPI_COMM_WORLD); break;
    case kScatter: MPI_Scatter(send, words, MPI_INT, receive, 1, type, root, MPI_COMM_WORLD); break;
    case kBcast:
      if (world_rank == root)
        MPI_Bcast(send, words, MPI_INT, root, MPI_COMM_WORLD);
      else
        MPI_Bcast(receive, 1, type, root, MPI_COMM_WORLD);
      break;
    default: {
      int counts[64], ones[64], from[64], to[64];
      MPI_Datatype ints[64], types[64];
      for (int r = 0; r < world_size; ++r) {
        counts[r] = words;
        ones[r] = 1;
        from[r] = r * words * (int)sizeof(int);
        to[r] = (int)((size_t)r * step);
        ints[r] = MPI_INT;
        types[r] = type;
      }
      MPI_Alltoallw(send, counts, from, ints, receive, ones, to, types, MPI_COMM_WORLD);
    }
  }
}

static void check(int what, int shape, int root, long* wrong, long* gaps, int* early) {
  const int words = kWords * 2 / world_size / 6000 * 6000;
  size_t step;
  MPI_Datatype type = block_type(shape, words, &step);
  const int blocks = what == kBcast || what == kAllgather || what == kGather ? 1 : world_size;
  for (int to = 0; to < blocks; ++to)
    for (int i = 0; i < words; ++i) send[to * words + i] = word(world_rank, to, i);
  for (size_t i = 0; i < memory_bytes; ++i) receive[i] = expected[i] = (char)(i * 7);
  memset(is_data, 0, memory_bytes);
  compute(what, root, words, type, step);
  if (rand() % 3 == 0) usleep((useconds_t)(rand() % 4000));
  call(what, root, words, type, step);
  *early += is_early() && gets(what, root);
  MPI_Type_free(&type);
  memset(send, 7, (size_t)blocks * (size_t)words * sizeof(int));
  for (size_t i = (size_t)(rand() % 50); i < memory_bytes; i += (size_t)(1 + rand() % 5000))
    if (!is_data[i]) receive[i] = expected[i] = (char)i;
  for (size_t i = memory_bytes; i-- > 0;) *(is_data[i] ? wrong : gaps) += receive[i] != expected[i];
}

int main(int argc, char** argv) {
  start(&argc, &argv, MPI_THREAD_SINGLE);
  srand((argc > 1 ? (unsigned)atoi(argv[1]) : 1) + (unsigned)world_rank);
  memory_bytes = (size_t)kWords * 2 * 3 * sizeof(int) * 2 + kBehind;
  send = malloc((size_t)kWords * 4 * sizeof(int));
  receive = malloc(memory_bytes);
  expected = malloc(memory_bytes);
  is_data = malloc(memory_bytes);
  MPI_Alltoall(send, 2 * kWords / world_size, MPI_INT, receive, 2 * kWords / world_size, MPI_INT, MPI_COMM_WORLD);
  for (int what = 0; what < kCollectives; ++what) {
    long wrong = 0, gaps = 0;
    int early = 0;
    for (int i = 0; i < kShapes * kRounds; ++i) check(what, i % kShapes, i % world_size, &wrong, &gaps, &early);
    printf("RESULT {\"case\": \"%s\", \"wrong\": %ld, \"gaps\": %ld, \"early\": %d}\n", names[what], wrong, gaps,
           early);
    fflush(stdout);
  }
  MPI_Finalize();
  return 0;
}
