/* SPDX-License-Identifier: Apache-2.0
 *
 * This program uses the interface from C++ as HugeCTR's and Transformer Engine's communicators
 * do. Each object has a job, and all jobs have the same number, which is that of the host. A
 * blocking barrier is the fence between steps. A ring of blocks of one registered buffer is
 * reduced in place as fp16, and the program tests the oldest request. Requests are never freed
 * and handles are never given back; destructors end everything.
 */
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "../conformance/conformance.h"

namespace {

class Communicator {
public:
    explicit Communicator(const std::string &device) : oob_(world)
    {
        struct sharp_coll_init_spec spec = {};
        spec.job_id = static_cast<uint64_t>(0x7f0101) << 32;
        spec.world_rank = own_rank;
        spec.world_size = own_size;
        spec.world_local_rank = 0;
        spec.oob_colls.barrier = oob_barrier;
        spec.oob_colls.bcast = oob_bcast;
        spec.oob_colls.gather = oob_gather;
        spec.oob_ctx = &oob_;
        spec.config = sharp_coll_default_config;
        spec.config.ib_dev_list = device.c_str();
        must(sharp_coll_init(&spec, &context_));
        struct sharp_coll_comm_init_spec group = {};
        group.rank = own_rank;
        group.size = own_size;
        group.oob_ctx = &oob_;
        must(sharp_coll_comm_init(context_, &group, &comm_));
    }

    Communicator(const Communicator &) = delete;
    Communicator &operator=(const Communicator &) = delete;

    /* This is not collective, whatever the others do. */
    ~Communicator()
    {
        oob_.is_closed = 1;
        if (leaves_group_)
            sharp_coll_comm_destroy(comm_);
        sharp_coll_finalize(context_);
    }

    void fence() { must(sharp_coll_do_barrier(comm_)); }

    void *name(void *start, size_t len)
    {
        void *handle = nullptr;
        must(sharp_coll_reg_mr(context_, start, len, &handle));
        return handle;
    }

    void *post_in_place(void *block, size_t count, enum sharp_datatype dtype, void *handle)
    {
        struct sharp_coll_reduce_spec spec = {};
        spec.sbuf_desc.buffer.ptr = block;
        spec.sbuf_desc.buffer.length = count * size_of(dtype);
        spec.sbuf_desc.buffer.mem_handle = handle;
        spec.sbuf_desc.type = SHARP_DATA_BUFFER;
        spec.rbuf_desc = spec.sbuf_desc;
        spec.dtype = dtype;
        spec.length = count;
        spec.op = SHARP_OP_SUM;
        void *request = nullptr;
        must(sharp_coll_do_allreduce_nb(comm_, &spec, &request));
        return request;
    }

    /* Leaves the group to sharp_coll_finalize. */
    void forget_group() { leaves_group_ = false; }

private:
    static void must(int code)
    {
        if (code != 0)
            throw std::runtime_error(sharp_coll_strerror(code));
    }

    struct oob oob_;
    struct sharp_coll_context *context_ = nullptr;
    struct sharp_coll_comm *comm_ = nullptr;
    bool leaves_group_ = true;
};

constexpr size_t BLOCKS = 32, BLOCK = 2048;

/* 1.0 in fp16 is 0x3c00; small powers of two follow in steps of 0x400. */
uint16_t power_of_two(int exponent)
{
    return static_cast<uint16_t>((15 + exponent) << 10);
}

/* Sums of equal powers of two at two, four or eight ranks are powers of two; other sums are
 * checked as numbers. */
double value(uint16_t half)
{
    double size = 1 + (half & 0x3ff) / 1024.0;
    for (int exponent = (half >> 10) - 15; exponent != 0; exponent += exponent < 0 ? 1 : -1)
        size = exponent < 0 ? size / 2 : size * 2;
    return size;
}

void ring(Communicator &communicator, bool frees)
{
    std::vector<uint16_t> buffer(BLOCKS * BLOCK);
    void *handle = communicator.name(buffer.data(), buffer.size() * sizeof buffer[0]);
    std::vector<void *> requests;

    for (size_t block = 0; block < BLOCKS; block++) {
        uint16_t *start = buffer.data() + block * BLOCK;
        for (size_t i = 0; i < BLOCK; i++)
            start[i] = power_of_two(static_cast<int>((block + i) % 6));
        requests.push_back(communicator.post_in_place(start, BLOCK, SHARP_DTYPE_FLOAT_SHORT, handle));
    }
    for (void *request : requests) {
        while (!sharp_coll_req_test(request))
            ;
        if (frees)
            sharp_coll_req_free(request);
    }
    for (size_t block = 0; block < BLOCKS; block++)
        for (size_t i = 0; i < BLOCK; i++) {
            int exponent = static_cast<int>((block + i) % 6);
            CHECK(value(buffer[block * BLOCK + i]) == own_size * value(power_of_two(exponent)));
        }
}

void hugectr()
{
    auto first = std::make_unique<Communicator>("mlx5_0:1");
    auto second = std::make_unique<Communicator>(std::string("mlx5_") + "1:1");

    for (int step = 0; step < 20; step++) {
        first->fence();
        second->fence();
    }
    ring(*first, true);
    ring(*second, false);
    first.reset();
    second->fence();
    ring(*second, true);
    second->forget_group();
}

const struct test tests[] = {{"hugectr", hugectr, 2}};

} // namespace

int main(int argc, char **argv)
{
    return run_tests(tests, LENGTH(tests), argc, argv);
}
