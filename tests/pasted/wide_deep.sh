# The published Wide & Deep recipe, command by command, as tests paste it into a
# session (tests/published/pasted_test.cc and tests/published/container_test.cc). The commands are as
# published: prompts, line breaks, indentation, paths and all.
# substitutions.txt has what is replaced before, and why.
#
# Where the text says what to do and has no command (run inference with these
# flags and store the log in that file; evaluate this graph), the command is the
# published one for inference with what the text says. Lines between "# Ours" and
# an empty line are not published: they put files where the commands look for
# them.

     $ git clone https://github.com/IntelAI/tools.git
     cd tools/tensorflow_quantization

     docker build \
     --build-arg HTTP_PROXY=${HTTP_PROXY} \
     --build-arg HTTPS_PROXY=${HTTPS_PROXY} \
     --build-arg http_proxy=${http_proxy} \
     --build-arg https_proxy=${https_proxy} \
     -t quantization:latest -f Dockerfile .

      python launch_quantization.py \
      --docker-image quantization:latest \
      --pre-trained-model-dir /home/<user>/<pre_trained_model_dir>

# Ours: a command that fails ends the script; files by the names that the
# commands below have for them.
set -e
mkdir -p /workspace/tensorflow/model_wide_deep/exports
ln -s /workspace/quantization/saved_model /workspace/tensorflow/model_<>/exports/<>
ln -s /workspace/quantization /home/<user>/wide_deep
ln -s /workspace/quantization/dataset_preprocessed_train.tfrecords /home/<user>/
ln -s /workspace/quantization/logged_int8_dynamic_range_wide_deep.pb /home/<user>/
ln -s /workspace/quantization/logged_freezed_range_int8_wide_deep.pb /home/<user>/

# Step 1.
        $ bazel-bin/tensorflow/tools/graph_transforms/summarize_graph \
        --in_graph=/workspace/quantization/graph.pbtxt \
        --print_structure=false >& model_nodes.txt

# Step 2.
        $ python tensorflow/python/tools/freeze_graph.py \
        --input_saved_model_dir=/workspace/tensorflow/model_<>/exports/<> \
        --output_graph= /workspace/quantization/wide_deep_frozen_fp32_graph.pb \
        --output_node_names=head/predictions/probabilities

# Step 3.
        $ bazel-bin/tensorflow/tools/graph_transforms/transform_graph \
        --in_graph=/workspace/quantization/wide_deep_frozen_fp32_graph.pb \
        --out_graph=/workspace/quantization/wide_deep_fp32_graph.pb \
        --inputs='Placeholder,Placeholder_1,Placeholder_2,Placeholder_3,Placeholder_4, \
        Placeholder_5,Placeholder_6,Placeholder_7,Placeholder_8,Placeholder_9,Placeholder_10, \
        Placeholder_11,Placeholder_12,Placeholder_13,Placeholder_14,Placeholder_15,Placeholder_16, \
        Placeholder_17,Placeholder_18,Placeholder_19,Placeholder_20,Placeholder_21,Placeholder_22, \
        Placeholder_23,Placeholder_24,Placeholder_25,Placeholder_26,Placeholder_27,Placeholder_28,  \
        Placeholder_29,Placeholder_30,Placeholder_31,Placeholder_32,Placeholder_33,Placeholder_34,   \
        Placeholder_35,Placeholder_36,Placeholder_37,Placeholder_38' \
        --outputs='head/predictions/probabilities' \
        --transforms='strip_unused_nodes remove_nodes(op=Identity, op=CheckNumerics) remove_attribute(attribute_name=_class)'

# Step 4.
            $ git clone https://github.com/IntelAI/models.git
            $ cd /home/<user>/models
            $ python models/recommendation/tensorflow/wide_deep_large_ds/dataset/featurecolumn_graph_optimization.py \
            --input-graph /workspace/quantization/wide_deep_fp32_graph.pb \
            --output-graph /workspace/quantization/optimized_wide_deep_fp32_graph.pb \
            --output-nodes head/predictions/probabilities \
            --wide_and_deep_large_ds True

# Ours: the graph to evaluate.
cp /workspace/quantization/optimized_wide_deep_fp32_graph.pb /workspace/quantization/wide_deep_fp32_pretrained_model.pb
echo "Evaluating optimized_wide_deep_fp32_graph.pb"

# Step 5.
        $ git clone https://github.com/IntelAI/models.git
        $ cd /home/<user>/models/benchmarks
        $ python launch_benchmark.py \
            --in-graph /home/<user>/<pretrained_model_directory>/wide_deep_fp32_pretrained_model.pb \
            --model-name wide_deep_large_ds \
            --framework tensorflow \
            --precision fp32 \
            --mode inference \
            --accuracy-only \
            --batch-size=1000 \
            --socket-id 0 \
            --data-location /root/user/wide_deep_files/dataset_preprocessed_eval.tfrecords \
            --docker-image  docker.io/intelaipg/intel-optimized-tensorflow:latest

# Step 6.
        $ python tensorflow/tools/quantization/quantize_graph.py \
        --input=/workspace/quantization/optimized_wide_deep_fp32_graph.pb \
        --output=/workspace/quantization/int8_dynamic_range_wide_deep_graph.pb \
        --output_node_names='import/head/predictions/probabilities' \
        --mode=eightbit \
        --intel_cpu_eightbitize=True \
        --model_name=wide_deep_large_ds

# Ours: the graph to evaluate.
cp /workspace/quantization/int8_dynamic_range_wide_deep_graph.pb /workspace/quantization/final_wide_deep_Int8_graph.pb
echo "Evaluating int8_dynamic_range_wide_deep_graph.pb"

# Step 6, evaluation.
        $ git clone https://github.com/IntelAI/models.git
        $ cd /home/<user>/models/benchmarks
        $ python launch_benchmark.py \
            --in-graph /home/<user>/<pretrained_model_directory>/final_wide_deep_Int8_graph.pb \
            --model-name wide_deep_large_ds \
            --framework tensorflow \
            --precision int8 \
            --mode inference \
            --accuracy-only \
            --batch-size=1000 \
            --socket-id 0 \
            --data-location /home/<user>/<dataset_directory>/dataset_preprocessed_eval.tfrecords \
            --docker-image  docker.io/intelaipg/intel-optimized-tensorflow:latest

# Step 7.
            $ bazel-bin/tensorflow/tools/graph_transforms/transform_graph \
            --in_graph=/workspace/quantization/int8_dynamic_range_wide_deep_graph.pb \
            --out_graph=/workspace/quantization/logged_int8_dynamic_range_wide_deep.pb \
            --transforms='insert_logging(op=RequantizationRange, show_name=true, message="__requant_min_max:")'

# Step 7, the log.
        $ git clone https://github.com/IntelAI/models.git
        $ cd /home/<user>/models/benchmarks
        $ python launch_benchmark.py \
            --in-graph=/home/<user>/logged_int8_dynamic_range_wide_deep.pb \
            --model-name wide_deep_large_ds \
            --framework tensorflow \
            --precision int8 \
            --mode inference \
            --accuracy-only \
            --batch_size=1024 \
            --socket-id 0 \
            --data-location=/home/<user>/dataset_preprocessed_train.tfrecords \
            --docker-image  docker.io/intelaipg/intel-optimized-tensorflow:latest >& /workspace/quantization/wide_deep_min_max_log.txt

# Step 7, ranges.
            $ bazel-bin/tensorflow/tools/graph_transforms/transform_graph \
            --in_graph=/workspace/quantization/int8_dynamic_range_wide_deep_graph.pb \
            --out_graph=/workspace/quantization/freezed_range_int8_wide_deep.pb \
            --transforms='freeze_requantization_ranges(min_max_log_file="/workspace/quantization/wide_deep_min_max_log.txt")'

# Ours: the graph to evaluate.
cp /workspace/quantization/freezed_range_int8_wide_deep.pb /workspace/quantization/final_wide_deep_Int8_graph.pb
echo "Evaluating freezed_range_int8_wide_deep.pb"

# Step 7, evaluation.
        $ git clone https://github.com/IntelAI/models.git
        $ cd /home/<user>/models/benchmarks
        $ python launch_benchmark.py \
            --in-graph /home/<user>/<pretrained_model_directory>/final_wide_deep_Int8_graph.pb \
            --model-name wide_deep_large_ds \
            --framework tensorflow \
            --precision int8 \
            --mode inference \
            --accuracy-only \
            --batch-size=1000 \
            --socket-id 0 \
            --data-location /home/<user>/<dataset_directory>/dataset_preprocessed_eval.tfrecords \
            --docker-image  docker.io/intelaipg/intel-optimized-tensorflow:latest

# Step 8.
            $ bazel-bin/tensorflow/tools/graph_transforms/transform_graph \
            --in_graph=/workspace/quantization/freezed_range_int8_wide_deep.pb \
            --out_graph=/workspace/quantization/logged_freezed_range_int8_wide_deep.pb \
            --transforms='insert_logging(op=Min, show_name=true, message="__min:")'

# Step 8, the log.
        $ git clone https://github.com/IntelAI/models.git
        $ cd /home/<user>/models/benchmarks
        $ python launch_benchmark.py \
            --in-graph=/home/<user>/logged_freezed_range_int8_wide_deep.pb \
            --model-name wide_deep_large_ds \
            --framework tensorflow \
            --precision int8 \
            --mode inference \
            --accuracy-only \
            --batch_size=1024 \
            --socket-id 0 \
            --data-location=/home/<user>/dataset_preprocessed_train.tfrecords \
            --docker-image  docker.io/intelaipg/intel-optimized-tensorflow:latest >& /workspace/quantization/wide_deep_min_log.txt

# Step 8, minima.
            $ bazel-bin/tensorflow/tools/graph_transforms/transform_graph \
            --in_graph=/workspace/quantization/freezed_range_int8_wide_deep.pb \
            --out_graph=/workspace/quantization/freezed_range_int8_wide_deep_freezemin.pb \
            --transforms='freeze_min(min_max_log_file="/workspace/quantization/wide_deep_min_log.txt")'

# Ours: the graph to evaluate.
cp /workspace/quantization/freezed_range_int8_wide_deep_freezemin.pb /workspace/quantization/final_wide_deep_Int8_graph.pb
echo "Evaluating freezed_range_int8_wide_deep_freezemin.pb"

# Step 8, evaluation.
        $ git clone https://github.com/IntelAI/models.git
        $ cd /home/<user>/models/benchmarks
        $ python launch_benchmark.py \
            --in-graph /home/<user>/<pretrained_model_directory>/final_wide_deep_Int8_graph.pb \
            --model-name wide_deep_large_ds \
            --framework tensorflow \
            --precision int8 \
            --mode inference \
            --accuracy-only \
            --batch-size=1000 \
            --socket-id 0 \
            --data-location /home/<user>/<dataset_directory>/dataset_preprocessed_eval.tfrecords \
            --docker-image  docker.io/intelaipg/intel-optimized-tensorflow:latest

# Step 9.
            $ bazel-bin/tensorflow/tools/graph_transforms/transform_graph \
            --in_graph=/workspace/quantization/freezed_range_int8_wide_deep.pb \
            --out_graph=/workspace/quantization/logged_freezed_range_int8_wide_deep.pb \
            --transforms='insert_logging(op=Max, show_name=true, message="__max:")'

# Step 9, the log.
        $ git clone https://github.com/IntelAI/models.git
        $ cd /home/<user>/models/benchmarks
        $ python launch_benchmark.py \
            --in-graph=/home/<user>/logged_freezed_range_int8_wide_deep.pb \
            --model-name wide_deep_large_ds \
            --framework tensorflow \
            --precision int8 \
            --mode inference \
            --accuracy-only \
            --batch_size=1024 \
            --socket-id 0 \
            --data-location=/home/<user>/dataset_preprocessed_train.tfrecords \
            --docker-image  docker.io/intelaipg/intel-optimized-tensorflow:latest >& /workspace/quantization/wide_deep_max_log.txt

# Step 9, maxima.
            $ bazel-bin/tensorflow/tools/graph_transforms/transform_graph \
            --in_graph=/workspace/quantization/freezed_range_int8_wide_deep_freezemin.pb \
            --out_graph=/workspace/quantization/freezed_range_int8_wide_deep_minmaxfreeze.pb \
            --transforms='freeze_max(min_max_log_file="/workspace/quantization/wide_deep_max_log.txt")'

# Ours: the graph to evaluate.
cp /workspace/quantization/freezed_range_int8_wide_deep_minmaxfreeze.pb /workspace/quantization/final_wide_deep_Int8_graph.pb
echo "Evaluating freezed_range_int8_wide_deep_minmaxfreeze.pb"

# Step 9, evaluation.
        $ git clone https://github.com/IntelAI/models.git
        $ cd /home/<user>/models/benchmarks
        $ python launch_benchmark.py \
            --in-graph /home/<user>/<pretrained_model_directory>/final_wide_deep_Int8_graph.pb \
            --model-name wide_deep_large_ds \
            --framework tensorflow \
            --precision int8 \
            --mode inference \
            --accuracy-only \
            --batch-size=1000 \
            --socket-id 0 \
            --data-location /home/<user>/<dataset_directory>/dataset_preprocessed_eval.tfrecords \
            --docker-image  docker.io/intelaipg/intel-optimized-tensorflow:latest

# Step 10.
        $ bazel-bin/tensorflow/tools/graph_transforms/transform_graph \
        --in_graph=/workspace/quantization/freezed_range_int8_wide_deep_minmaxfreeze.pb \
        --out_graph=/workspace/quantization/final_int8_wide_deep.pb \
        --outputs='import/head/predictions/probabilities' \
        --transforms='fuse_quantized_matmul_and_requantize strip_unused_nodes'

# Ours: the graph to evaluate.
cp /workspace/quantization/final_int8_wide_deep.pb /workspace/quantization/final_wide_deep_Int8_graph.pb
echo "Evaluating final_int8_wide_deep.pb"

# Step 10, evaluation.
        $ git clone https://github.com/IntelAI/models.git
        $ cd /home/<user>/models/benchmarks
        $ python launch_benchmark.py \
            --in-graph /home/<user>/<pretrained_model_directory>/final_wide_deep_Int8_graph.pb \
            --model-name wide_deep_large_ds \
            --framework tensorflow \
            --precision int8 \
            --mode inference \
            --accuracy-only \
            --batch-size=1000 \
            --socket-id 0 \
            --data-location /home/<user>/<dataset_directory>/dataset_preprocessed_eval.tfrecords \
            --docker-image  docker.io/intelaipg/intel-optimized-tensorflow:latest
